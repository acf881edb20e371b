import { describe, expect, it } from "vitest";
import { fullText, inputTokens, literalText, outputTokens } from "../src/format/argument";
import { brief, bytes, duration, plural } from "../src/format/numbers";
import { shortDtype, tensorText } from "../src/format/tensor";
import { fileName, shorten, visible, visibleLines } from "../src/format/text";
import { childrenOf } from "../src/model/walk";
import { corpus, hostile, modelOf } from "./captures";

describe("text", () => {
  it("shows what would be invisible or would turn the text around", () => {
    expect(visible("a\u202eb\u2066c\u0000\u200b\n\ud800")).toBe("a\\u{202e}b\\u{2066}c\\u{0000}\\u{200b}\\n\\u{d800}");
    expect(visible("größe 張量 😀 עברית")).toBe("größe 張量 😀 עברית");
  });

  it("keeps the lines of a log and escapes the rest", () => {
    expect(visibleLines("a\tb\r\nc\u001b[31md")).toBe("a\tb\nc\\u{001b}[31md");
  });

  it("never cuts a character in half", () => {
    expect(shorten("😀".repeat(20), 5)).toBe("😀😀😀…😀");
    expect(shorten("short", 5)).toBe("short");
  });

  it("takes a file's name from either kind of path", () => {
    expect([fileName("a/b.py"), fileName("C:\\a\\b.py"), fileName("b.py")]).toEqual(["b.py", "b.py", "b.py"]);
  });
});

describe("numbers", () => {
  it("are short where space is, and exact where they can be", () => {
    expect([bytes(512), bytes(4608), bytes(16 * 2 ** 20)]).toEqual(["512 B", "4.5 KiB", "16 MiB"]);
    expect([brief(512), brief(108_288), brief(70_553_706_496)]).toEqual(["512", "108 K", "70.6 B"]);
    expect([duration(1234), duration(61_000), duration(3_720_000)]).toEqual(["1.2 s", "1 min 01 s", "1 h 02 min"]);
    expect([plural(1, "operation"), plural(1234, "operation")]).toEqual(["1 operation", "1,234 operations"]);
  });
});

describe("tensors", () => {
  it("have short dtypes and symbolic sizes as they are", () => {
    expect(tensorText({ dtype: "torch.bfloat16", shape: [1, "s0*2", 64] })).toBe("bf16[1,s0*2,64]");
    expect(tensorText({ dtype: "torch.int64", shape: [] })).toBe("i64[]");
    expect(shortDtype("torch.float8_e4m3fn")).toBe("f8_e4m3fn");
  });
});

describe("arguments", () => {
  const snapshot = hostile();
  const model = modelOf(snapshot);
  const everything = snapshot.operations[0];
  if (!everything) throw new Error("the fixture has no operation");
  const text = (index: number) => fullText(everything.args[index] ?? { kind: "none" });

  it("show every literal exactly", () => {
    expect(text(1)).toBe("[0, -1, 9007199254740993, -10000000000000000000000000000000000000000]");
    expect(text(2)).toBe("[0.1, -0.0, 1.0, inf, -inf, nan, 1e-45]");
    expect(text(3)).toBe("[torch.float16, cuda:0, torch.strided, torch.channels_last]");
    expect(text(4)).toBe(
      "(complex(1.5, -0.0), generator on cpu, profiler range, Mode.FAST, s0*2 + 1, ..., True, None)",
    );
    expect(text(5)).toBe("slice(1, None, -1)");
    expect(text(8)).toBe("Config(width=8, nested=[])");
    expect(text(10)).toBe(
      '"<script>alert(1)</script> \\u{202e}right to left\\u{202c} \\u{0000} tab\\t newline\\n end"',
    );
  });

  it("keep a dangerous key as a mere label", () => {
    const [table] = childrenOf(everything.args[6] ?? { kind: "none" });
    expect(table).toMatchObject({ label: '"__proto__"', steps: ["entries", 0, "value"] });
  });

  it("stay short in a row", () => {
    expect(literalText(everything.args[12] ?? { kind: "none" })).toBe("[0, 1, 2, 3, …]");
    expect(inputTokens(model, everything).length).toBeLessThanOrEqual(25);
  });

  it("name parameters, mark origins and count equal results", () => {
    const addmm = snapshot.operations[3];
    expect(addmm && inputTokens(model, addmm)).toEqual([{ text: "f32[16,8]", name: "weight", origin: "state" }]);
    expect(outputTokens(model, everything.output)[0]).toEqual({ text: "2 × f32[4,8]", origin: "computed" });
  });

  it("count nothing that only looks equal", () => {
    const nested = corpus("nested_outputs");
    const tokens = outputTokens(modelOf(nested), nested.operations[0]?.output ?? null);
    expect(tokens.every(({ text: shown }) => shown.length > 0)).toBe(true);
  });
});
