import type { Problem } from "@tensorviz/contracts";
import { visible, visibleLines } from "../format/text";
import { pathText } from "../model/walk";

/** A problem in the order in which a person needs it: what, why, what to do, and the places concerned. */
export function ProblemText({ problem }: { problem: Problem }) {
  return (
    <>
      <p>
        <strong>{visible(problem.title)}</strong>
      </p>
      {problem.detail && <p class="problem-detail">{visibleLines(problem.detail)}</p>}
      {problem.hint && <p class="problem-hint">{visibleLines(problem.hint)}</p>}
      {problem.faults.length > 0 && (
        <ul class="faults">
          {problem.faults.map(({ path, message }, i) => (
            <li key={i}>
              <code>{visible(pathText(path))}</code> {visible(message)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
