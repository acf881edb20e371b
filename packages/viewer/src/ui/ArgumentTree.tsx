import { useSignal } from "@preact/signals";
import type { Argument, Value } from "@tensorviz/contracts";
import { fullText, kindText, opaqueReason, originOf } from "../format/argument";
import { count } from "../format/numbers";
import { tensorText } from "../format/tensor";
import { lastComponent, shorten, visible } from "../format/text";
import { statePath, valueOf, type CaptureModel } from "../model/capture";
import { childrenOf, isLeaf, pathText, type Path } from "../model/walk";
import { Icon } from "./icons";
import { ProducerLink, Readers, TensorFacts } from "./TensorFacts";

const PAGE = 50;
const TEXT = 240;

/** An argument at its place: what the call or its schema calls it, and its path in the record. */
export interface Rooted {
  label: string;
  path: Path;
  argument: Argument;
}

/** Typed argument trees, whole. A tensor that came before is shown once and then referred to. */
export function ArgumentTree({ model, roots, self }: { model: CaptureModel; roots: readonly Rooted[]; self: string }) {
  const first = new Map<string, string>();
  for (const { path, argument } of roots) noteFirst(argument, path, first);
  return (
    <ul class="argument-tree">
      {roots.map((root) => (
        <Node key={pathText(root.path)} model={model} node={root} self={self} first={first} open={!isLeaf(root.argument)} />
      ))}
    </ul>
  );
}

/** Where each tensor is seen first. Long containers are not searched: their items are looked at when they are shown. */
function noteFirst(argument: Argument, path: Path, first: Map<string, string>): void {
  if (argument.kind === "tensor") {
    if (!first.has(argument.value)) first.set(argument.value, pathText(path));
    return;
  }
  for (const child of childrenOf(argument)) noteFirst(child.argument, [...path, ...child.steps], first);
}

interface NodeProps {
  model: CaptureModel;
  node: Rooted;
  /** The record that the tree belongs to. */
  self: string;
  first: ReadonlyMap<string, string>;
  open?: boolean;
}

function Node(props: NodeProps) {
  const { argument } = props.node;
  if (argument.kind === "tensor") return <TensorNode {...props} id={argument.value} />;
  if (isLeaf(argument)) return <LeafNode node={props.node} />;
  return <ContainerNode {...props} />;
}

/** Of what an operation made itself, the interesting end is the other one. */
function isOwnResult(path: Path, { producer }: Value, self: string): boolean {
  return path[0] === "output" && producer.kind === "output" && producer.operation === self;
}

function Label({ node }: { node: Rooted }) {
  return (
    <span class="arg-label" title={pathText(node.path)}>
      {visible(node.label)}
    </span>
  );
}

function TensorNode({ model, node, self, id, first }: NodeProps & { id: string }) {
  const open = useSignal(false);
  const value = valueOf(model, id);
  if (!value) return <li>{id}</li>;
  const here = pathText(node.path);
  const before = first.get(id);
  return (
    <li class="arg tensor-arg">
      <button type="button" class="arg-line" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        <span class={`twisty ${open.value ? "open" : ""}`}>
          <Icon name="chevron" />
        </span>
        <Label node={node} />
        <span class={`token tensor ${originOf(model, id)}`}>{tensorText(value)}</span>
        {value.state !== null && <span class="token-name" title={visible(statePath(model, value.state))}>{visible(lastComponent(statePath(model, value.state)))}</span>}
      </button>
      <div class="arg-under">
        {before !== undefined && before !== here && <span class="muted">the same tensor as {before}</span>}
        {isOwnResult(node.path, value, self) ? (
          <Readers model={model} value={value} />
        ) : (
          <ProducerLink model={model} value={value} at={here} />
        )}
      </div>
      {open.value && <TensorFacts model={model} value={value} />}
    </li>
  );
}

function LeafNode({ node }: { node: Rooted }) {
  const { argument } = node;
  const whole = useSignal(false);
  const text = fullText(argument);
  const long = text.length > TEXT;
  return (
    <li class="arg">
      <div class="arg-line">
        <span class="twisty" />
        <Label node={node} />
        <span class={`literal ${argument.kind}`}>{long && !whole.value ? shorten(text, TEXT) : text}</span>
        <span class="arg-kind">{kindText(argument)}</span>
      </div>
      {long && (
        <button type="button" class="go arg-more" onClick={() => (whole.value = !whole.value)}>
          {whole.value ? "Show less" : `Show all ${count(text.length)} characters`}
        </button>
      )}
      {argument.kind === "opaque" && (
        <p class="arg-note">
          {visible(argument.type)}: {opaqueReason(argument)}
        </p>
      )}
      {argument.kind === "symbolic" && <p class="arg-note">A description of a size that is not fixed, not a number.</p>}
    </li>
  );
}

function ContainerNode({ model, node, self, first, open: start }: NodeProps) {
  const open = useSignal(start ?? false);
  const shown = useSignal(PAGE);
  const parts = childrenOf(node.argument);
  const rest = parts.length - shown.value;
  return (
    <li class="arg">
      <button type="button" class="arg-line" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        <span class={`twisty ${open.value ? "open" : ""}`}>
          <Icon name="chevron" />
        </span>
        <Label node={node} />
        <span class="literal container">{open.value ? "" : shorten(fullText(node.argument, 4), 60)}</span>
        <span class="arg-kind">
          {kindText(node.argument)}
          {node.argument.kind !== "slice" && ` · ${count(parts.length)}`}
        </span>
      </button>
      {open.value && parts.length === 0 && <p class="arg-note">empty</p>}
      {open.value && parts.length > 0 && (
        <ul>
          {parts.slice(0, shown.value).map((child) => {
            const path = [...node.path, ...child.steps];
            return (
              <Node key={pathText(path)} model={model} self={self} first={first} open={parts.length <= 8} node={{ ...child, path }} />
            );
          })}
          {rest > 0 && (
            <li>
              <button type="button" class="go arg-more" onClick={() => (shown.value += PAGE * 4)}>
                Show {count(Math.min(rest, PAGE * 4))} more of {count(parts.length)}
              </button>
            </li>
          )}
        </ul>
      )}
    </li>
  );
}
