import { useSignal } from "@preact/signals";
import type { Producer, Value } from "@tensorviz/contracts";
import { bytes, count } from "../format/numbers";
import { dimensions, tensorText } from "../format/tensor";
import { visible } from "../format/text";
import { callName, position, valueOf, type CaptureModel } from "../model/capture";
import { argumentName } from "../model/effects";
import { usePaths, valueIndex } from "../model/values";
import { pathText } from "../model/walk";
import { useStore } from "../state/store";
import { Fact, Facts, Go } from "./bits";

const FEW = 8;

/** Where a tensor came from: the operation, the input, the parameter, or that nothing recorded made it. */
export function ProducerLink({ model, value, at }: { model: CaptureModel; value: Value; at?: string }) {
  const { producer } = value;
  switch (producer.kind) {
    case "output":
    case "effect":
      return <MadeBy model={model} producer={producer} />;
    case "input":
      return <GivenAs model={model} producer={producer} at={at} />;
    case "state": {
      const state = model.snapshot.state[position(producer.state)];
      return (
        <span class="producer">
          {state?.kind ?? "state"} {visible(state?.paths[0]?.path ?? "")}
        </span>
      );
    }
    case "external":
      return <span class="producer">external: {EXTERNAL[producer.reason]}</span>;
  }
}

type Kind<K extends Producer["kind"]> = Extract<Producer, { kind: K }>;

const EXTERNAL: Record<Kind<"external">["reason"], string> = {
  first_use: "made before the run, or by code that was not recorded",
  unobserved_write: "changed by something that was not recorded",
};

function MadeBy({ model, producer }: { model: CaptureModel; producer: Kind<"output" | "effect"> }) {
  const written = producer.kind === "effect";
  const path = pathText([written ? "effects" : "output", ...producer.path]);
  return (
    <span class="producer">
      {written ? "written by " : "from "}
      <OperationLink model={model} index={position(producer.operation)} title={path} />
    </span>
  );
}

function GivenAs({ model, producer, at }: { model: CaptureModel; producer: Kind<"input">; at: string | undefined }) {
  const { view } = useStore();
  const call = position(producer.invocation);
  const path = pathText(producer.path);
  if (path === at && view.selection.value.op === null) return <span class="producer">given to this call</span>;
  return (
    <span class="producer">
      input {path} of <Go onGo={() => view.select({ call, op: null })}>{visible(model.labels[call] ?? "")}</Go>
    </span>
  );
}

export function OperationLink({ model, index, title }: { model: CaptureModel; index: number; title?: string }) {
  const { view } = useStore();
  const target = model.snapshot.operations[index]?.target ?? "";
  return (
    <Go onGo={() => view.reveal(index)} title={[visible(target), title].filter(Boolean).join(" · ")}>
      {shortTarget(target)} <span class="link-number">#{count(index)}</span>
    </Go>
  );
}

export function shortTarget(target: string): string {
  return visible(target).replace(/^aten\./, "").replace(/\.default$/, "");
}

/** All that was recorded of one tensor at one version. */
export function TensorFacts({ model, value }: { model: CaptureModel; value: Value }) {
  return (
    <div class="tensor-facts">
      <Facts>
        <Fact name="Shape">{dimensions(value.shape)}</Fact>
        <Fact name="Dtype">{visible(value.dtype)}</Fact>
        <Fact name="Device">{visible(value.device)}</Fact>
        <Memory value={value} />
        <Identity model={model} value={value} />
        <Fact name="Requires grad">{value.requiresGrad === null ? "not observed" : value.requiresGrad ? "yes" : "no"}</Fact>
        <Fact name="Type">{visible(value.type)}</Fact>
        <StateFacts model={model} value={value} />
        <Fact name="Produced by">
          <ProducerLink model={model} value={value} />
        </Fact>
        <Fact name="Used by">
          <Consumers model={model} value={value} />
        </Fact>
      </Facts>
    </div>
  );
}

function Memory({ value }: { value: Value }) {
  return (
    <>
      <Fact name="Strides" title="In elements">{value.strides === null ? "not known" : dimensions(value.strides)}</Fact>
      <Fact name="Storage offset" title="In elements">{value.storageOffset === null ? "not known" : visible(String(value.storageOffset))}</Fact>
      <Fact name="Layout">{visible(value.layout)}</Fact>
      <Fact name="Bytes" title="Number of elements times the size of one; not what was allocated">
        {value.logicalBytes === undefined ? "not known" : `${bytes(value.logicalBytes)}${value.logicalBytes >= 1024 ? ` (${count(value.logicalBytes)})` : ""}`}
      </Fact>
    </>
  );
}

function Identity({ model, value }: { model: CaptureModel; value: Value }) {
  const index = valueIndex(model);
  const next = index.next(value.id);
  const previous = value.previousVersion === null ? undefined : valueOf(model, value.previousVersion);
  const aliases = index.aliases(value);
  return (
    <>
      <Fact name="Value" title="One tensor object at one version">{value.id}</Fact>
      <Fact name="Object" title="Identity of the tensor object">{value.object}</Fact>
      <Fact name="Storage" title="Identity of the memory; a view has its base's">
        {value.storage ?? "not known"}
        {aliases.length > 0 && <Aliases model={model} values={aliases} />}
      </Fact>
      <Fact name="Version" title="torch's own counter, and the number of this observation of the object">
        <VersionText version={value.version} /> <span class="muted">· observation {value.logicalVersion}</span>
      </Fact>
      {previous && (
        <Fact name="Earlier version">
          {previous.id} <ProducerLink model={model} value={previous} />
        </Fact>
      )}
      {next && (
        <Fact name="Later version">
          {next.id} <ProducerLink model={model} value={next} />
        </Fact>
      )}
    </>
  );
}

/** torch's counter of a value, where it was there to be read. */
export function VersionText({ version }: { version: number | null }) {
  if (version !== null) return <>{version}</>;
  return <span title="An inference tensor, which has no counter, or one that was gone before autograd completed its counter">not observed</span>;
}

function Aliases({ model, values }: { model: CaptureModel; values: readonly Value[] }) {
  const open = useSignal(false);
  const noun = values.length === 1 ? "tensor shares" : "tensors share";
  return (
    <>
      {" · "}
      <button type="button" class="go" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        {count(values.length)} other {noun} it
      </button>
      {open.value && (
        <ul class="plain-list">
          {values.slice(0, 40).map((other) => (
            <li key={other.id}>
              {tensorText(other)} {other.state === null ? <ProducerLink model={model} value={other} /> : visible(statePathOf(model, other))}
            </li>
          ))}
          {values.length > 40 && <li class="muted">and {count(values.length - 40)} more</li>}
        </ul>
      )}
    </>
  );
}

function statePathOf(model: CaptureModel, value: Value): string {
  const state = value.state === null ? undefined : model.snapshot.state[position(value.state)];
  return state ? `${state.kind} ${state.paths[0]?.path ?? ""}` : "";
}

/** A parameter may be registered under several names: all of them count. */
function StateFacts({ model, value }: { model: CaptureModel; value: Value }) {
  const state = value.state === null ? undefined : model.snapshot.state[position(value.state)];
  if (!state) return null;
  return (
    <Fact name={state.kind === "parameter" ? "Parameter" : "Buffer"}>
      <ul class="plain-list">
        {state.paths.map(({ root, path }) => (
          <li key={`${root}/${path}`}>{visible(path)}</li>
        ))}
      </ul>
    </Fact>
  );
}

function Consumers({ model, value }: { model: CaptureModel; value: Value }) {
  const shown = useSignal(FEW);
  const uses = valueIndex(model).consumers(value.id);
  if (uses.length === 0) return <span class="muted">no recorded operation</span>;
  return (
    <ul class="plain-list">
      {uses.slice(0, shown.value).map((index) => (
        <li key={index}>
          <OperationLink model={model} index={index} /> <span class="muted">{useNames(model, index, value.id)}</span>
        </li>
      ))}
      {uses.length > shown.value && (
        <li>
          <button type="button" class="go" onClick={() => (shown.value += 100)}>
            {count(uses.length - shown.value)} more
          </button>
        </li>
      )}
    </ul>
  );
}

/** The first few operations that read a tensor, on one line. */
export function Readers({ model, value }: { model: CaptureModel; value: Value }) {
  const uses = valueIndex(model).consumers(value.id);
  if (uses.length === 0) return <span class="muted">used by no recorded operation</span>;
  return (
    <span class="producer">
      used by{" "}
      {uses.slice(0, 3).map((index, i) => (
        <span key={index}>
          {i > 0 && ", "}
          <OperationLink model={model} index={index} />
        </span>
      ))}
      {uses.length > 3 && ` and ${count(uses.length - 3)} more`}
    </span>
  );
}

function useNames(model: CaptureModel, index: number, value: string): string {
  const operation = model.snapshot.operations[index];
  if (!operation) return "";
  const paths = usePaths(model, index, value);
  return paths.map((path) => `as ${argumentName(model, operation, path)}`).join(", ") + (value ? ` in ${callName(model, ownerOf(operation.invocation))}` : "");
}

function ownerOf(invocation: string | null): number {
  return invocation === null ? -1 : position(invocation);
}
