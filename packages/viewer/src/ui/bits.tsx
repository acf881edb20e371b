import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Invocation } from "@tensorviz/contracts";
import type { Token } from "../format/argument";
import { Icon, type IconName } from "./icons";

/** A button that looks like what it does: a place to go to. */
export function Go({ onGo, title, children }: { onGo: () => void; title?: string; children: ComponentChildren }) {
  return (
    <button type="button" class="go" onClick={onGo} title={title}>
      {children}
    </button>
  );
}

export function IconButton(props: { icon: IconName; label: string; onClick: () => void; class?: string }) {
  return (
    <button type="button" class={`icon-button ${props.class ?? ""}`} aria-label={props.label} title={props.label} onClick={props.onClick}>
      <Icon name={props.icon} />
    </button>
  );
}

export function Copy({ text, label }: { text: string; label: string }) {
  const copied = useSignal(false);
  const copy = async () => {
    copied.value = await writeClipboard(text);
    setTimeout(() => (copied.value = false), 1500);
  };
  return (
    <button type="button" class="icon-button small" aria-label={label} title={label} onClick={() => void copy()}>
      <Icon name={copied.value ? "ok" : "copy"} />
      <span class="hidden" role="status">
        {copied.value ? "Copied" : ""}
      </span>
    </button>
  );
}

async function writeClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * A tensor or literal in a line of them; tensors carry a mark in the colour of where they came from. The eye has gaps
 * between them; the clipboard and a screen reader have commas.
 */
export function Tokens({ tokens }: { tokens: readonly Token[] }) {
  return (
    <>
      {tokens.map(({ text, name, origin }, i) => (
        <span key={i} class={origin ? `token tensor ${origin}` : "token"}>
          {name && <span class="token-name">{spaced(name)}</span>}
          {text}
          {i < tokens.length - 1 && <span class="separator">, </span>}
        </span>
      ))}
    </>
  );
}

export function tokensTitle(tokens: readonly Token[]): string {
  return tokens.map(({ name, text }) => (name ? spaced(name) + text : text)).join("  ·  ");
}

/** A dotted or slashed path in a narrow place: its end stays, its beginning gives way. */
export function PathText({ text, split }: { text: string; split: string }) {
  const at = text.lastIndexOf(split);
  const cut = split === ":" ? at : at + 1;
  return (
    <>
      <span class="path-start">{text.slice(0, Math.max(0, cut))}</span>
      <span class="path-end">{text.slice(Math.max(0, cut))}</span>
    </>
  );
}

/** A keyword ends in its equals sign, which stands close to the value. */
function spaced(name: string): string {
  return name.endsWith("=") ? name : `${name} `;
}

export type Tone = "good" | "warn" | "bad" | "plain";

export function Badge({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

export function StatusBadge({ status }: { status: Invocation["status"] }) {
  if (status === "completed") return null;
  if (status === "stopped") return <Badge tone="plain">stopped</Badge>;
  return status === "failed" ? <Badge tone="bad">failed</Badge> : <Badge tone="warn">in flight</Badge>;
}

/** A list of facts: name and value side by side. */
export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

export function Fact({ name, title, children }: { name: string; title?: string; children: ComponentChildren }) {
  return (
    <>
      <dt title={title}>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

export function Section({ title, count, children }: { title: string; count?: number; children: ComponentChildren }) {
  return (
    <section class="section">
      <h3>
        {title}
        {count !== undefined && <span class="section-count">{count}</span>}
      </h3>
      {children}
    </section>
  );
}
