"""What goes wrong around a program: files that change, full disks, missing rights, few resources, signals."""
