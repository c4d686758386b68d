import sys

line = "x" * (1 << 20)
for _ in range(2048):
    sys.stdout.write(line)
for _ in range(256):
    sys.stderr.write(line)
raise RuntimeError("said enough")
