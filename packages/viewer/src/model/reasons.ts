import type { CaptureSnapshot, EventCoverage, Reason, Termination } from "@tensorviz/contracts";
import { count, plural } from "../format/numbers";
import { visible } from "../format/text";
import { position } from "./capture";

export type ReasonCode = Reason["code"];

/** What happened, what is missing because of it, and what a person can do. */
export interface Explanation {
  happened: string;
  missing: string;
  todo: string;
}

const EXPLANATIONS: Record<ReasonCode, Explanation> = {
  run_failed: {
    happened: "The program raised an exception.",
    missing: "Everything up to the failure is recorded; what would have run after it did not run.",
    todo: "Look at the failing operation's operands and at the line it ran from. The message is in the attempt's log.",
  },
  data_dependent: {
    happened: "An operation needs the values of its tensors, and fake tensors have none.",
    missing: "What would have run after it depends on those values; what ran in place of it may be another path.",
    todo: "Capture without --fake, on a smaller configuration if need be, or keep the model's path independent of values.",
  },
  fake_unsupported: {
    happened: "An operation has no rule that tells the shapes of its results for fake tensors.",
    missing: "Everything up to that operation is recorded; what would have run after it did not run.",
    todo: "Capture without --fake, or register a fake kernel for the operation (torch.library.register_fake).",
  },
  worker_exited: {
    happened: "The worker's process ended by itself before the run did, for example through os._exit.",
    missing: "What ran after the last recorded event.",
    todo: "Look for an exit near the last event, and at the attempt's log.",
  },
  worker_killed: {
    happened: "A signal ended the worker's process: a crash in native code, or too little memory.",
    missing: "What ran after the last recorded event.",
    todo: "The operation marked as in flight was running when it ended. Try a smaller input or a higher memory limit.",
  },
  timed_out: {
    happened: "The run did not finish before its deadline.",
    missing: "Everything up to that is recorded; what would have run after it did not run.",
    todo: "Capture again with a longer timeout (--timeout), or look whether the last operations repeat for ever.",
  },
  cancelled: {
    happened: "The run was cancelled.",
    missing: "Everything up to that is recorded; what would have run after it did not run.",
    todo: "Capture again and let the run finish to see the rest.",
  },
  operation_limit: {
    happened: "The capture's budget of operations was used up.",
    missing: "Later operations ran, but were not recorded.",
    todo: "Capture a smaller input or a part of the model, or raise the operation limit.",
  },
  invocation_limit: {
    happened: "The capture's budget of module calls was used up.",
    missing: "Later module calls ran, but were not recorded.",
    todo: "Capture a part of the model, or raise the invocation limit.",
  },
  value_limit: {
    happened: "The capture's budget of tensor values was used up.",
    missing: "Tensors first seen after that have no facts.",
    todo: "Capture a smaller input, or raise the value limit.",
  },
  byte_limit: {
    happened: "The capture reached its size in bytes.",
    missing: "What ran after that was not recorded.",
    todo: "Capture a smaller input or a part of the model, or raise the byte limit.",
  },
  location_limit: {
    happened: "Source locations took a quarter of the capture's byte budget, which is their share.",
    missing: "The lines of code of what ran at places that were new after that. Nothing else is missing.",
    todo: "Capture a smaller input or a part of the model, or raise the byte limit.",
  },
  path_limit: {
    happened: "Modules, parameters or buffers are registered under more paths than a capture lists.",
    missing: "Some of the names under which a shared module or tensor is registered.",
    todo: "Nothing is wrong with what is shown; names that are missing are other ways to reach the same object.",
  },
  argument_limit: {
    happened: "An argument was nested too deeply, had too many items, or held a text that is too long.",
    missing: "The part of that argument beyond the limit: it is marked where it was cut.",
    todo: "Raise the argument limits if you need to see it.",
  },
  unsupported_argument: {
    happened: "An argument or result holds an object that the recorder does not read.",
    missing: "What that object holds, tensors included: only its type is known.",
    todo: "Pass tensors in lists, tuples, dicts or dataclasses where you want to see them.",
  },
  unsupported_tensor: {
    happened: "A tensor's metadata could not be read, such as that of a wrapper inside a function transform.",
    missing: "That tensor's shape, identity and memory.",
    todo: "Look at the operations around it; they are recorded.",
  },
  dynamic_state: {
    happened: "A parameter was created while the model ran.",
    missing: "Its registered path: nothing told which parameter it is.",
    todo: "Create parameters in __init__ where you can.",
  },
  failed_write: {
    happened: "A kernel failed while it may have been writing into one of its operands.",
    missing: "What the operand holds since then.",
    todo: "Do not trust values that were written by the failing operation.",
  },
  unobserved_write: {
    happened: "A tensor changed without a recorded operation, for example through NumPy or a native extension.",
    missing: "Which code changed it.",
    todo: "Follow the tensor: its new version is marked as coming from outside.",
  },
  escaped_storage: {
    happened: "The memory of a tensor was handed out, for example by numpy() or data_ptr().",
    missing: "What was read or written there behind the dispatcher.",
    todo: "Stay with torch operations between the input and the output to see all of it.",
  },
  compiled_region: {
    happened: "Compiled code ran, such as a function under torch.compile.",
    missing: "The operations inside its kernels: the dispatcher does not show them.",
    todo: "Run the model without torch.compile to see each operation.",
  },
  unobserved_process: {
    happened: "The program started another process, by a fork or by multiprocessing, which is not recorded.",
    missing: "The operations of that process.",
    todo: "Run the model in one process to see all of it.",
  },
  unobserved_thread: {
    happened: "Work may have run on another thread, which is not recorded.",
    missing: "The operations of that thread.",
    todo: "Run the model on one thread to see all of it.",
  },
  unobserved_operation: {
    happened:
      "Work was done on tensors where the dispatcher does not show it, for example by tolist() or with dispatch switched off.",
    missing: "That work, and where the tensors that came of it were made.",
    todo: "Follow the tensors that are marked as coming from outside.",
  },
  unobserved_call: {
    happened: "Modules may have been called around nn.Module's own call, for example by a class with a call of its own.",
    missing: "Those calls. Their operations are listed under the call around them.",
    todo: "Call modules through nn.Module.__call__ to see each call.",
  },
  lazy_state: {
    happened: "A parameter or buffer had no value yet when its model was entered.",
    missing: "Its facts at entry.",
    todo: "Run lazy modules once before you capture them.",
  },
  instrumentation_error: {
    happened: "The recorder itself failed. The program was not disturbed.",
    missing: "What the recorder was reading at that time.",
    todo: "This is a defect in tensorviz: please report it with the detail below.",
  },
};

export function explain(code: string): Explanation {
  return Object.hasOwn(EXPLANATIONS, code)
    ? EXPLANATIONS[code as ReasonCode]
    : { happened: `Reason ${visible(code)}.`, missing: "This page does not know the reason.", todo: "Update tensorviz." };
}

/** How the run ended, in a sentence. */
export function terminationText(snapshot: CaptureSnapshot): string {
  return endText(snapshot.termination, snapshot);
}

function endText(end: Termination, snapshot: CaptureSnapshot): string {
  switch (end.kind) {
    case "returned":
      return "The run returned.";
    case "raised": {
      const exception = snapshot.diagnostics[position(end.diagnostic)]?.exception ?? "an exception";
      return `The run raised ${visible(exception.replace(/^builtins\./, ""))}.`;
    }
    case "exited":
      return `The worker's process exited with status ${end.code} before the run ended.`;
    case "killed":
      return `The worker's process was ended by ${visible(end.signal)}.`;
    case "timed_out":
      return `The run was stopped at its deadline of ${end.seconds} s.`;
    case "cancelled":
      return "The run was cancelled.";
  }
}

/** `344 operations`, and what is known to be missing. */
export function coverageText(coverage: EventCoverage, noun: string): string {
  const recorded = plural(coverage.recorded, noun);
  if (coverage.omitted === 0) return `${recorded}, all that were observed`;
  if (coverage.omitted === null) return `${recorded} recorded; an unknown number is missing`;
  return `${recorded} recorded, ${count(coverage.omitted)} omitted`;
}

const NORMALIZATIONS: Record<string, string> = {
  dict_storage: "Dict subclasses show the entries in their storage; overridden methods were not called.",
  declared_write_versions: "Logical versions count the writes that operator schemas declare.",
  fake_device_reads: "Device reads of fake tensors (prim.device) are not recorded.",
};

export function normalizationText(code: string): string {
  return Object.hasOwn(NORMALIZATIONS, code) ? (NORMALIZATIONS[code] as string) : visible(code);
}
