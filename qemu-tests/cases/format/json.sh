# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The output as JSON: a program reads it, and finds numbers, bytes, stacks and losses as they were.
cd /tmp
cat >/tmp/json-read.py <<'EOF'
import json, os, sys

lines = [json.loads(line) for line in sys.stdin]
start, end = lines[0], lines[-1]
print(start["type"], start["version"], start["host"] == os.uname().nodename, start["kernel"] == os.uname().release)
print([program["matched"] > 0 for program in start["programs"]], start["aggregations"])
for line in lines[1:-1]:
    kind = line["type"]
    if kind == "probe":
        late = line["timestamp"] < start["timestamp"] + 30 * 10**9
        print(kind, late, line["provider"], line["name"])
        for element in line["output"]:
            if "stack" in element:
                frames = element["stack"]
                element = {"stack": [sorted(frame) for frame in frames[:1]], "addresses": all(f["address"].startswith("0xffff") for f in frames)}
            print("  ", json.dumps(element))
    elif kind == "aggregation":
        print(kind, line["name"], line["func"], line["keys"], line.get("value"), line.get("buckets"))
    elif kind == "fault":
        print(kind, line["fault"], line["address"], line["source"], line["name"])
    else:
        print(kind, line.get("tag"), line["message"])
print(end["type"], end["status"], end["records"], end["aggregations"], end["drops"], end["faults"])
EOF

dtrace -O json -qn '
	BEGIN
	{
		printf("%s|%d", "a\"\xff", -1);
		trace("line\n");
		trace((uint64_t)-1);
		@n["x,y", pid == $pid] = count();
		@q = quantize(4096);
	}
	BEGIN { stack(3); }
	BEGIN { trace(*(int *)0x10); }
	BEGIN { exit(3); }' >/tmp/json-lines 2>/tmp/json-errors
echo "status $?, $(wc -c </tmp/json-errors) bytes of errors"
python3 /tmp/json-read.py </tmp/json-lines

# Not quiet: a firing without data is a line, and nothing is told twice.
dtrace -x oformat=json -n 'BEGIN { exit(0); }' 2>&1 | grep -c '"output":\[\]'

# Commands and files are not in the stream.
dtrace -wx oformat=json -qn 'BEGIN { system("echo hello"); freopen("/tmp/json-text"); printf("text\n"); exit(0); }' 2>/tmp/json-errors | sed -nE 's/.*"output":(.*)\}/\1/p'
cat /tmp/json-errors /tmp/json-text

# Lists, versions, errors.
dtrace -lO json -n 'dtrace:::BEGIN' | python3 -c 'import json, sys; line = json.load(sys.stdin); print(line["type"], line["provider"], line["name"])'
dtrace -lvO json -n 'dtrace:::BEGIN' | python3 -c 'import json, sys; line = json.load(sys.stdin); print(line["args"], sorted(line["attributes"]))'
dtrace -VO json
dtrace -O json -n 'BEGIN { trace(foo); }' 2>/dev/null
echo "status $?"
dtrace -O xml -n BEGIN 2>&1
echo "status $?"

# A reader that goes, and a disk that is full.
dtrace -O json -qn 'tick-10ms { printf("line"); }' | head -1 | cut -c 1-15
echo "${PIPESTATUS[0]}"
dtrace -O json -qn 'BEGIN { printf("lost"); exit(0); }' 2>&1 >/dev/full
echo "status $?"

# Tables.
dtrace -O csv -qn 'BEGIN { printf("no"); @n["a,b"] = sum(7); @q = lquantize(5, 0, 10, 5); exit(0); }'
rm -f /tmp/json-lines /tmp/json-errors /tmp/json-text /tmp/json-read.py
