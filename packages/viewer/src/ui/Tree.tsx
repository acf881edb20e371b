import { signal, type Signal } from "@preact/signals";
import type { Invocation } from "@tensorviz/contracts";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { outputTokens } from "../format/argument";
import { count } from "../format/numbers";
import { visible } from "../format/text";
import { className, definitionType, RUN, type CaptureModel } from "../model/capture";
import { GROUP, type TreeRow, type Uncalled } from "../model/tree";
import { useStore, type Store } from "../state/store";
import type { Selection } from "../state/view";
import { tokensTitle, Tokens } from "./bits";
import { Icon } from "./icons";
import { useWindow } from "./virtual";

const ROW = 26;
const INDENT = 14;

/** The calls of the run as a tree, in the order in which they happened. */
export function Tree() {
  const store = useStore();
  const { view } = store;
  const rows = view.rows.value;
  const cursor = useMemo(() => signal<Cursor | null>(null), []);
  const at = activeRow(rows, view.selection.value, cursor.value);
  const window = useWindow(rows.length, ROW, at, view.model.value?.snapshot.id ?? "");
  const active = rows[at];
  return (
    <nav class="pane tree-pane" aria-label="Module calls">
      <div class="scroller" ref={window.ref} onScroll={window.onScroll}>
        <div
          class="tree"
          role="tree"
          tabIndex={0}
          aria-label="Module calls, in order"
          aria-activedescendant={active && `tree-${active.key}`}
          style={{ height: `${rows.length * ROW}px` }}
          onKeyDown={(event) => onKey(event, { store, rows, at, cursor, page: window.page })}
        >
          {rows.slice(window.from, window.to).map((row, i) => (
            <Row key={row.key} row={row} top={(window.from + i) * ROW} active={row === active} />
          ))}
        </div>
      </div>
    </nav>
  );
}

/** Where the keyboard is while it is on a row that selects nothing; any new selection takes it away. */
interface Cursor {
  key: string;
  selection: Selection;
}

function activeRow(rows: readonly TreeRow[], selection: Selection, cursor: Cursor | null): number {
  const found = cursor?.selection === selection ? rows.findIndex((row) => row.key === cursor.key) : -1;
  return found >= 0 ? found : rows.findIndex((row) => rowCall(row) === selection.call);
}

function toggleTarget(row: TreeRow): number {
  return row.kind === "group" ? GROUP : (rowCall(row) ?? RUN);
}

/** The call that a row selects; rows of modules without a call select nothing. */
function rowCall(row: TreeRow): number | null {
  return row.kind === "call" ? row.call : row.kind === "run" ? RUN : null;
}

function Row({ row, top, active }: { row: TreeRow; top: number; active: boolean }) {
  const store = useStore();
  const model = store.view.model.value as CaptureModel;
  const failed = row.kind === "call" ? model.snapshot.invocations[row.call]?.status : undefined;
  const toggle = (event: Event) => {
    if (row.open === undefined) return;
    event.stopPropagation();
    store.view.toggle(toggleTarget(row));
  };
  return (
    <div
      id={`tree-${row.key}`}
      role="treeitem"
      aria-level={row.level}
      aria-posinset={row.position}
      aria-setsize={row.size}
      aria-expanded={row.open}
      aria-selected={active}
      class={`tree-row ${row.kind} ${failed ?? ""}`}
      style={{ top: `${top}px`, paddingLeft: `${6 + (row.level - 1) * INDENT}px` }}
      onClick={(event) => (row.kind === "group" ? toggle(event) : choose(store, row))}
      onDblClick={toggle}
    >
      <span class={`twisty ${row.open ? "open" : ""}`} aria-hidden="true" onClick={toggle}>
        {row.open !== undefined && <Icon name="chevron" />}
      </span>
      {row.kind === "call" && <CallRow model={model} call={row.call} store={store} />}
      {row.kind === "run" && <RunRow model={model} store={store} />}
      {row.kind === "group" && <span class="tree-label muted">Not called ({count(row.modules)})</span>}
      {row.kind === "module" && <ModuleRow module={row.module} />}
    </div>
  );
}

function CallRow({ model, call, store }: { model: CaptureModel; call: number; store: Store }) {
  const { snapshot, labels, paths } = model;
  const record = snapshot.invocations[call];
  if (!record) return null;
  const label = visible(labels[call] ?? "");
  const type = visible(className(snapshot, record.module));
  const output = outputTokens(model, record.output);
  const nth = model.nth[call] ?? 0;
  return (
    <>
      <StatusMark status={record.status} />
      <span class="tree-name" title={`${visible(paths[call] ?? "")} ${visible(definitionType(snapshot, record.module))}`.trim()}>
        <span class="tree-label">{label}</span>
        {nth > 0 && (
          <span class="tree-nth" title={`Call ${nth} of this module here`}>
            #{nth}
          </span>
        )}
        {label !== type && <span class="tree-type">{type}</span>}
      </span>
      <span class="tree-shape" title={tokensTitle(output)}>
        <Tokens tokens={output.slice(0, 1)} />
        {output.length > 1 && <span class="muted"> +{output.length - 1}</span>}
      </span>
      <Counter store={store} call={call} operations={model.below[call] ?? 0} />
    </>
  );
}

function RunRow({ model, store }: { model: CaptureModel; store: Store }) {
  return (
    <>
      <span class="tree-name">
        <span class="tree-label">Run</span>
        <span class="tree-type">{visible(model.snapshot.execution.target)}</span>
      </span>
      <Counter store={store} call={RUN} operations={model.snapshot.operations.length} />
    </>
  );
}

function ModuleRow({ module }: { module: Uncalled }) {
  const why = module.container
    ? "Not called itself; modules inside it were."
    : module.state === "not_observed"
      ? "No call of this module was recorded."
      : `Coverage: ${module.state.replaceAll("_", " ")}.`;
  return (
    <span class="tree-name" title={`${module.path} ${why}`}>
      <span class="tree-label muted">{module.path || module.type}</span>
      <span class="tree-type">{module.type}</span>
      {module.container && <span class="tree-type">· container</span>}
    </span>
  );
}

const STATUS = { failed: "failed", stopped: "left early by torch's own control flow", in_flight: "in flight when the run ended" };
const STATUS_ICON = { failed: "fail", stopped: "stop", in_flight: "clock" } as const;

function StatusMark({ status }: { status: Invocation["status"] }) {
  if (status === "completed") return null;
  const text = STATUS[status];
  return (
    <span class={`mark ${status}`} title={text}>
      <Icon name={STATUS_ICON[status]} />
      <span class="hidden">{text}</span>
    </span>
  );
}

function Counter({ store, call, operations }: { store: Store; call: number; operations: number }) {
  const { finder } = store;
  if (finder.query.value.trim()) {
    const hits = finder.perCall.value.get(call) ?? 0;
    return hits > 0 ? <span class="tree-hits" title={`${hits} matches`}>{count(hits)}</span> : <span class="tree-count" />;
  }
  return <span class="tree-count" title={`${count(operations)} operations`}>{count(operations)}</span>;
}

function choose({ view }: Store, row: TreeRow | undefined, step: "push" | "replace" = "push"): void {
  const call = row && rowCall(row);
  if (call !== null && call !== undefined) view.select({ call, op: null }, step);
}

interface Keys {
  store: Store;
  rows: readonly TreeRow[];
  at: number;
  cursor: Signal<Cursor | null>;
  page: number;
}

function onKey(event: JSX.TargetedKeyboardEvent<HTMLElement>, keys: Keys): void {
  const { store, rows, at, page } = keys;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const moves: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    Home: 0,
    End: rows.length - 1,
    PageDown: at + page,
    PageUp: at - page,
  };
  const to = moves[event.key];
  if (to !== undefined) moveTo(keys, to);
  else if (event.key === "ArrowRight") goIn(keys);
  else if (event.key === "ArrowLeft") goOut(keys);
  else if (event.key === "Enter") document.getElementById("operations-grid")?.focus();
  else if (event.key === "*") store.view.expandSiblings();
  else return;
  event.preventDefault();
}

/** A call is selected as the arrows reach it; other rows only take the cursor. */
function moveTo({ store, rows, cursor }: Keys, to: number): void {
  const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
  if (!row) return;
  if (rowCall(row) === null) cursor.value = { key: row.key, selection: store.view.selection.value };
  else {
    cursor.value = null;
    choose(store, row, "replace");
  }
}

function goIn(keys: Keys): void {
  const row = keys.rows[keys.at];
  if (row?.open === undefined) return;
  if (row.open) moveTo(keys, keys.at + 1);
  else keys.store.view.toggle(toggleTarget(row), true);
}

function goOut(keys: Keys): void {
  const row = keys.rows[keys.at];
  if (row?.open) keys.store.view.toggle(toggleTarget(row), false);
  else if (row) moveTo(keys, parentRow(keys.rows, keys.at));
}

function parentRow(rows: readonly TreeRow[], at: number): number {
  const level = rows[at]?.level ?? 1;
  for (let i = at; i >= 0; i -= 1) if ((rows[i]?.level ?? 0) < level) return i;
  return at;
}
