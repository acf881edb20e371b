import { render } from "preact";
import { webHost } from "./host/web";
import { takeToken } from "./state/link";
import { createStore, StoreProvider } from "./state/store";
import { applyTheme } from "./state/theme";
import { App } from "./ui/App";
import "./styles/index.css";

applyTheme();
const token = takeToken();
const store = createStore(webHost(token ?? ""));
if (token === null) store.session.connection.value = "tokenless";
else store.session.connect();
addEventListener("popstate", () => store.session.onAddress());
addEventListener("hashchange", () => takeToken() !== token && location.reload());

const root = document.getElementById("app");
if (root) {
  render(
    <StoreProvider value={store}>
      <App />
    </StoreProvider>,
    root,
  );
}
