// What the curves of a page are made from: numbers in words, ticks, smoothing, the record nearest to a step.

function shown(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return String(value);
  return size !== 0 && (size < 1e-4 || size >= 1e6) ? value.toExponential(3) : String(Number(value.toPrecision(4)));
}

// Multiples of 1, 2 or 5 times a power of ten; on a logarithmic scale the powers alone where there are enough.
function ticks(low, high, about, logarithmic) {
  if (logarithmic && high >= 10 * low) {
    const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
    const every = Math.max(1, Math.ceil((last - first + 1) / 6)), found = [];
    for (let power = first; power <= last; power += every) found.push(10 ** power);
    return found;
  }
  const rough = high / about - low / about;
  if (!(rough > 1e-300 && rough < 1e300)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const every = [1, 2, 5, 10].map((times) => power * times).find((one) => one >= rough);
  const found = [];
  for (let number = Math.ceil(low / every); number <= high / every; number += 1) found.push(number * every);
  return found;
}

// An exponential mean that begins at the first value, so that its beginning is not drawn towards zero.
function smoothed(values, smoothing) {
  if (!smoothing) return values;
  let sum = 0, weight = 0;
  return values.map((value) => {
    sum = smoothing * sum + (1 - smoothing) * value;
    weight = smoothing * weight + (1 - smoothing);
    return sum / weight;
  });
}

function nearest(steps, step) {
  let low = 0, high = steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1; else high = middle;
  }
  return low > 0 && step - steps[low - 1] < steps[low] - step ? low - 1 : low;
}
