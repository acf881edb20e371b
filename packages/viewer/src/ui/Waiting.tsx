import { useStore } from "../state/store";
import { Copy } from "./bits";
import { Icon } from "./icons";
import { ProblemText } from "./ProblemText";

/** What stands where the capture will be, while there is none. */
export function Waiting() {
  const { session } = useStore();
  const connection = session.connection.value;
  if (connection === "tokenless") return <NoToken />;
  if (connection === "unauthorized") return <NoAccess />;
  if (session.problem.value) return <NotLoaded />;
  if (session.loading.value !== null) return <Quiet text="Loading the capture…" />;
  if (session.known.value) return session.attempt.value ? <Quiet text="The capture appears here as soon as it is ready." /> : <Empty />;
  if (connection === "reconnecting") return <Unreachable />;
  return <Quiet text="Connecting to the host…" />;
}

function Quiet({ text }: { text: string }) {
  return (
    <main class="waiting">
      <p class="muted" role="status">{text}</p>
    </main>
  );
}

function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <Copy text={text} label={`Copy: ${text}`} />
    </div>
  );
}

function NoAccess() {
  return (
    <main class="waiting">
      <div class="card">
        <Icon name="warn" class="large" />
        <h1>This page has no access to its host</h1>
        <p>
          The address that tensorviz prints carries a token, and every start of the host makes a new one. This tab has the token of
          another start.
        </p>
        <p>Use the address that is printed in the terminal where tensorviz runs, or start a new host and use the one that it prints:</p>
        <Command text="tensorviz open" />
      </div>
    </main>
  );
}

function NoToken() {
  return (
    <main class="waiting">
      <div class="card">
        <Icon name="warn" class="large" />
        <h1>This page has no access to its host</h1>
        <p>The address that tensorviz prints carries a token, and this tab was opened without one.</p>
        <p>Use the address that is printed in the terminal where tensorviz runs, or start a new host and use the one that it prints:</p>
        <Command text="tensorviz open" />
      </div>
    </main>
  );
}

function Unreachable() {
  const { session } = useStore();
  return (
    <main class="waiting">
      <div class="card">
        <Icon name="warn" class="large" />
        <h1>The host has ended</h1>
        <p>Nothing answers at this page's address. Start tensorviz again and use the address that it prints:</p>
        <Command text="tensorviz open" />
        <button type="button" class="button" onClick={() => session.retry()}>
          Try now
        </button>
      </div>
    </main>
  );
}

function NotLoaded() {
  const { session } = useStore();
  const problem = session.problem.value;
  const newest = session.ledger.value.captures[0];
  return (
    <main class="waiting">
      <div class="card" role="alert">
        <Icon name="warn" class="large" />
        <h1>The capture could not be shown</h1>
        {problem && <ProblemText problem={problem} />}
        {newest && (
          <button type="button" class="button primary" onClick={() => void session.show(newest.id)}>
            Show the newest capture
          </button>
        )}
      </div>
    </main>
  );
}

const EXAMPLE = `model = MyModel()

def example_inputs():
    return torch.randn(2, 16),`;

/** For somebody who sees tensorviz for the first time. */
function Empty() {
  const { panel } = useStore();
  return (
    <main class="waiting">
      <div class="card wide">
        <h1>Nothing is captured yet</h1>
        <p>
          tensorviz runs a model once and shows what PyTorch really executed: every operation, module call and tensor, with shapes,
          and the place in your code it came from.
        </p>
        <ol class="steps">
          <li>
            <h2>Take a file with a model</h2>
            <p>Any file that defines a model and says how to call it:</p>
            <pre>{EXAMPLE}</pre>
          </li>
          <li>
            <h2>Capture it</h2>
            <p>Here, or in a terminal:</p>
            <button type="button" class="button primary" onClick={() => (panel.value = "new")}>
              Capture a file…
            </button>
            <Command text="tensorviz open model.py" />
          </li>
          <li>
            <h2>Read it here</h2>
            <p>New captures appear on this page by themselves.</p>
          </li>
        </ol>
      </div>
    </main>
  );
}
