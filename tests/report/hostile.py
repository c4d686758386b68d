"""Words that are not what they seem, in the place of a report's words."""

# Text that means something to a browser, a terminal, a file system, or to the order of letters.
HOSTILE = (
    '<script>document.title="owned"</script>',
    '"><img src=x onerror="document.title=\'owned\'">',
    "</script><script>document.title='owned'</script>",
    "' onmouseover='document.title=1' x='",
    "{{ 7 * 7 }} {% raw %}",
    "javascript:document.title=1",
    "\u202egnorw yaw eht \u2066all\u2069 \u200b\ufeff",
    "bell \x07 escape \x1b[31m nul \x00 c1 \x9b",
    "../../../../etc/passwd",
    "line\nbreak\r\nand\ttab",
    "é漢字🙂" * 5,
    "long " + "x" * 100_000,
)


def hostile(data, seed=0):
    """The data with its words made hostile: ideas, notes, messages, names of searches, sources."""
    words = iter(range(seed, 1 << 20))

    def text(before):
        return f"{before} {HOSTILE[next(words) % len(HOSTILE)]}"

    for problem in data["problems"][:4]:
        problem["title"] = text(problem["title"])
        problem["pytorch"] = text(problem["pytorch"])
        problem["definition"] = [text(one) for one in problem["definition"]]
        problem["file"] = " ".join(HOSTILE) + problem["file"]
    for kernel in data["kernels"]:
        kernel["idea"] = text(kernel["idea"])
        kernel["source"] = "// " + " ".join(HOSTILE) + "\n" + kernel["source"]
        kernel["origin"]["note"] = text("note")
    for search in data["searches"]:
        search["name"] = text("search")
        search["file"] = f"trajectories/{HOSTILE[0]}.jsonl"
        search["notes"] = " ".join(HOSTILE)
        search["replies"] = text("replies")
        for candidate in search["candidates"]:
            candidate["idea"] = text("idea")
            candidate["idea_text"] = " ".join(HOSTILE)
            candidate["model"] = text("model")
            candidate["recorded"]["message"] = text("message")
            if "source" in candidate:
                candidate["source"] = "\n".join(HOSTILE) + candidate["source"]
    for device in data["devices"]:
        device["name"] = "device " + HOSTILE[-1] + " ".join(HOSTILE)  # pictures have it as their title
        device["caption"] = text("caption")
        for row in device.get("rows", []):
            row["message"] = text("message")
            row["badge_notes"] = text("notes")
            row["also_recorded"] = {HOSTILE[0]: {"nested": HOSTILE[1]}}
            for reference in row["references"]:
                reference["details"] = text("details")
    for group in data["gallery"].values():
        for one in group:
            for key in ("what", "caught_by", "idea", "seen_at"):
                if key in one:
                    one[key] = text(key)
    data["complaints"] = [{"file": HOSTILE[0], "message": one, "unreadable": True}
                          for one in HOSTILE]
    return data
