// Asks the server that a page came from for a newer one, and tells it when the page is left.

const EVERY = 5000;
let version = null;

function tell(text) {
  const status = document.querySelector("#live");
  if (status) status.textContent = text;
}

async function look() {
  try {
    const headers = version === null ? {} : { "If-None-Match": version };
    const answer = await fetch(location.href, { cache: "no-store", headers });
    const known = version;
    if (answer.status === 200) {
      version = answer.headers.get("ETag");
      const text = await answer.text();
      if (known !== null) {
        const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
        document.querySelector("main").replaceWith(document.adoptNode(fresh));
        start();
      }
    }
    tell("this page follows the run");
    setTimeout(look, EVERY);
  } catch {
    tell("the command that showed this page has ended; the page stays as it was");
  }
}

addEventListener("pagehide", () => navigator.sendBeacon(location.href, "bye"));
look();
