import type { Operation } from "@tensorviz/contracts";
import type { JSX } from "preact";
import { inputTokens, outputTokens } from "../format/argument";
import { count } from "../format/numbers";
import { visible } from "../format/text";
import { callName, owner, place, relativeName, RUN, type CaptureModel } from "../model/capture";
import { effectNames } from "../model/effects";
import { useStore, type Store } from "../state/store";
import { PathText, Tokens, tokensTitle } from "./bits";
import { CallHeader } from "./CallHeader";
import { Icon } from "./icons";
import { useWindow } from "./virtual";

const ROW = 28;
const HEAD = 28;

/** The middle of the page: the selected call, and what it ran. */
export function Middle() {
  const { view } = useStore();
  return (
    <main class="pane middle" aria-label="Selected call">
      <CallHeader />
      <Tabs />
      <div class="tab-panel" role="tabpanel" id="panel-operations" aria-labelledby="tab-operations">
        {view.operations.value.length > 0 ? <Grid /> : <NoOperations />}
      </div>
    </main>
  );
}

function Tabs() {
  const { view } = useStore();
  const { call, deep } = view.selection.value;
  const model = view.model.value as CaptureModel;
  const own = call === RUN ? model.outside.length : (model.own[call]?.length ?? 0);
  const all = call === RUN ? model.snapshot.operations.length : (model.below[call] ?? 0);
  return (
    <div class="tabs">
      <div role="tablist" aria-label="Views of the selected call">
        <button type="button" role="tab" id="tab-operations" aria-selected="true" aria-controls="panel-operations" class="tab">
          Operations <span class="tab-count">{count(view.operations.value.length)}</span>
        </button>
      </div>
      {all > own && (
        <div class="switch" role="group" aria-label="Which operations">
          <button type="button" aria-pressed={deep} onClick={() => view.select({ deep: true })} title="Operations of this call and of every call inside it">
            With nested calls <span class="tab-count">{count(all)}</span>
          </button>
          <button type="button" aria-pressed={!deep} onClick={() => view.select({ deep: false })} title="Only the operations that this call ran itself">
            Its own <span class="tab-count">{count(own)}</span>
          </button>
        </div>
      )}
    </div>
  );
}

function NoOperations() {
  const { view } = useStore();
  const { call, deep } = view.selection.value;
  const model = view.model.value as CaptureModel;
  const below = call === RUN ? model.snapshot.operations.length : (model.below[call] ?? 0);
  return (
    <div class="quiet">
      <p>{deep || below === 0 ? "No operation was recorded in this call." : "This call ran no operation itself: all are in the calls inside it."}</p>
      {!deep && below > 0 && (
        <button type="button" class="button" onClick={() => view.select({ deep: true })}>
          Show the {count(below)} of nested calls
        </button>
      )}
    </div>
  );
}

function Grid() {
  const store = useStore();
  const { view } = store;
  const operations = view.operations.value;
  const { call, op, deep } = view.selection.value;
  const at = op === null ? -1 : indexIn(operations, op);
  const window = useWindow(operations.length, ROW, at, `${view.model.value?.snapshot.id} ${call}`, HEAD);
  const shown = operations.slice(window.from, window.to);
  return (
    <div class={`scroller grid-scroller ${deep ? "deep" : ""}`} ref={window.ref} onScroll={window.onScroll}>
      <div
        id="operations-grid"
        role="grid"
        tabIndex={0}
        aria-label="Operations in the order in which they ran"
        aria-rowcount={operations.length + 1}
        aria-activedescendant={at >= 0 ? `op-${op}` : undefined}
        style={{ height: `${operations.length * ROW + HEAD}px` }}
        onKeyDown={(event) => onKey(event, store, operations, at, window.page)}
      >
        <Head deep={deep} />
        <div role="rowgroup" class="grid-body">
          {shown.map((index, i) => (
            <Row
              key={index}
              index={index}
              row={window.from + i}
              selected={index === op}
              deep={deep}
              above={window.from + i > 0 ? operations[window.from + i - 1] : undefined}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

/** Operations are listed in ascending order, so a row is found by halving. */
function indexIn(operations: readonly number[], op: number): number {
  let low = 0;
  let high = operations.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((operations[middle] as number) < op) low = middle + 1;
    else high = middle;
  }
  return operations[low] === op ? low : -1;
}

function Head({ deep }: { deep: boolean }) {
  return (
    <div role="rowgroup" class="grid-head">
      <div role="row" class="grid-row" aria-rowindex={1}>
        <span role="columnheader" class="number" title="Place in the order of execution">#</span>
        <span role="columnheader">Operation</span>
        <span role="columnheader">Inputs</span>
        <span role="columnheader">Output</span>
        {deep && <span role="columnheader" class="cell-module">Module</span>}
        <span role="columnheader">Source</span>
      </div>
    </div>
  );
}

interface RowProps {
  index: number;
  row: number;
  selected: boolean;
  deep: boolean;
  above: number | undefined;
}

function Row({ index, row, selected, deep, above }: RowProps) {
  const { view, finder } = useStore();
  const model = view.model.value as CaptureModel;
  const operation = model.snapshot.operations[index];
  if (!operation) return null;
  const inputs = inputTokens(model, operation);
  const output = outputTokens(model, operation.output);
  const source = place(model, operation.location);
  const hit = finder.operations.value.has(index) ? "hit" : "";
  return (
    <div
      id={`op-${index}`}
      role="row"
      aria-rowindex={row + 2}
      aria-selected={selected}
      class={`grid-row ${operation.status} ${hit}`}
      style={{ top: `${row * ROW}px` }}
      onClick={() => view.select({ op: index })}
    >
      <span role="gridcell" class="number">{count(index)}</span>
      <span role="gridcell" class="cell-target">
        <Target model={model} index={index} />
      </span>
      <span role="gridcell" class="cell-tokens" title={tokensTitle(inputs)}>
        <Tokens tokens={inputs} />
      </span>
      <span role="gridcell" class="cell-tokens" title={tokensTitle(output)}>
        <Ending status={operation.status} />
        <Tokens tokens={output} />
      </span>
      {deep && <ModuleCell model={model} index={index} above={above} />}
      <span role="gridcell" class="cell-source" title={source?.full}>
        <PathText text={source?.text ?? ""} split=":" />
      </span>
    </div>
  );
}

/** `aten.add.Tensor`: the namespace and the overload are there, but quiet. */
function Target({ model, index }: { model: CaptureModel; index: number }) {
  const operation = model.snapshot.operations[index];
  if (!operation) return null;
  const [space, name, ...rest] = visible(operation.target).split(".");
  const written = effectNames(model, operation);
  return (
    <>
      <span class="target" title={visible(operation.target)}>
        {name === undefined ? space : (
          <>
            {space !== "aten" && <span class="muted">{space}.</span>}
            {name}
            {rest.length > 0 && rest.join(".") !== "default" && <span class="muted">.{rest.join(".")}</span>}
          </>
        )}
      </span>
      {written.length > 0 && (
        <span class="writes" title={`Writes into ${written.join(", ")}`}>
          <Icon name="pen" />
          <span class="hidden">writes into {written.join(", ")}</span>
        </span>
      )}
    </>
  );
}

function Ending({ status }: { status: Operation["status"] }) {
  if (status === "completed") return null;
  return (
    <span class={`ending ${status}`}>
      <Icon name={status === "failed" ? "fail" : "clock"} />
      {status === "failed" ? "failed" : "in flight"}
    </span>
  );
}

/** A module that the row above names already is quiet, so that changes stand out. */
function ModuleCell({ model, index, above }: { model: CaptureModel; index: number; above: number | undefined }) {
  const { view } = useStore();
  const operation = model.snapshot.operations[index];
  if (!operation) return null;
  const call = owner(operation);
  const before = above === undefined ? undefined : model.snapshot.operations[above];
  const from = view.selection.value.call;
  const name = call === from || call === RUN ? "" : relativeName(model, call, from);
  return (
    <span
      role="gridcell"
      class={`cell-module ${before && owner(before) === call ? "same" : ""}`}
      title={call === RUN ? "Outside of every module call" : callName(model, call)}
    >
      <PathText text={name} split="." />
    </span>
  );
}

function onKey(
  event: JSX.TargetedKeyboardEvent<HTMLElement>,
  { view }: Store,
  operations: readonly number[],
  at: number,
  page: number,
): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const moves: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    Home: 0,
    End: operations.length - 1,
    PageDown: at + page,
    PageUp: at - page,
  };
  const to = moves[event.key];
  if (to !== undefined) {
    const op = operations[Math.max(0, Math.min(operations.length - 1, to))];
    if (op !== undefined) view.select({ op }, "replace");
  } else if (event.key === "Enter") document.getElementById("inspector")?.focus();
  else if (event.key === "ArrowLeft") document.querySelector<HTMLElement>(".tree")?.focus();
  else return;
  event.preventDefault();
}
