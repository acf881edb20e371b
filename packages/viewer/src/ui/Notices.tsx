import { clock } from "../format/numbers";
import { lastComponent, visible } from "../format/text";
import { modelName } from "../model/capture";
import { useStore } from "../state/store";
import { AttemptStrip } from "./AttemptStrip";
import { IconButton } from "./bits";
import { Icon } from "./icons";
import { ProblemText } from "./ProblemText";
import { PartialBanner } from "./Reasons";

/** What a person should know before reading on: what runs, what failed, what is missing. */
export function Notices() {
  const { view, session } = useStore();
  const model = view.model.value;
  const attempt = session.attempt.value;
  return (
    <div class="notices">
      {model && session.connection.value === "unauthorized" && <Refused />}
      {attempt && <AttemptStrip key={attempt.id} attempt={attempt} />}
      {attempt && model && <Earlier />}
      <Offer />
      {model && session.problem.value && (
        <section class="banner bad" role="alert">
          <Icon name="warn" />
          <div class="banner-text">
            <ProblemText problem={session.problem.value} />
          </div>
          <IconButton icon="close" label="Close this message" onClick={() => (session.problem.value = null)} />
        </section>
      )}
      {model?.snapshot.status === "partial" && <PartialBanner key={model.snapshot.id} model={model} />}
    </div>
  );
}

/** While something newer runs or has failed, what is displayed says that it is the earlier one. */
function Earlier() {
  const { view, session } = useStore();
  const model = view.model.value;
  const created = session.displayed.value?.created;
  return (
    <p class="earlier">
      Shown below: the earlier capture of {model ? modelName(model) : ""}
      {created === undefined ? "" : `, from ${clock(created)}`}.
    </p>
  );
}

/** Another host has taken the place of the one that this page came from. */
function Refused() {
  return (
    <section class="banner warn" role="alert" aria-label="No access">
      <Icon name="warn" />
      <div class="banner-text">
        <p>
          <strong>The host does not accept this page's token.</strong> It was started anew, and every start makes a new token.
        </p>
        <p class="banner-more">
          Use the address that is printed in the terminal where tensorviz runs, or start a new host with <code>tensorviz open</code>{" "}
          and use the one that it prints. This page keeps showing what it has loaded.
        </p>
      </div>
    </section>
  );
}

function Offer() {
  const { session } = useStore();
  const offered = session.offered.value;
  if (!offered) return null;
  return (
    <section class="banner plain" role="status">
      <Icon name="ok" />
      <p class="banner-text">
        A new capture of <strong>{visible(lastComponent(offered.model ?? offered.target))}</strong> is ready.
      </p>
      <button type="button" class="button" onClick={() => void session.show(offered.id)}>
        Show it
      </button>
      <IconButton icon="close" label="Not now" onClick={() => (session.offered.value = null)} />
    </section>
  );
}
