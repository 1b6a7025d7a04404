"""RFC 8785 by a program that shares no code with Sluice: JSON from stdin, its canonical form's sha256 to stdout."""
import hashlib
import json
import sys


def number(value):
    """ECMAScript's way to write a number, from the shortest digits that Python's repr finds."""
    if isinstance(value, int) and abs(value) < 2**53:
        return str(value)
    value = float(value)
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        return sign + (digits.ljust(point, "0") if len(digits) <= point else digits[:point] + "." + digits[point:])
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    return sign + digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + "e" + ("+" if power > 0 else "-") + str(abs(power))


SHORT = {0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\"}


def text(value):
    return '"' + "".join(SHORT.get(ord(c)) or ("\\u%04x" % ord(c) if ord(c) < 0x20 else c) for c in value) + '"'


def canonical(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    # By UTF-16 code units, which is not the order of code points.
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    return "{" + ",".join(text(key) + ":" + canonical(value[key]) for key in keys) + "}"


def main():
    form = canonical(json.loads(sys.stdin.buffer.read().decode("utf-8")))
    if sys.argv[1:] == ["--show"]:
        sys.stdout.buffer.write(form.encode("utf-8"))
    else:
        print(hashlib.sha256(form.encode("utf-8")).hexdigest())


main()
