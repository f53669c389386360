import { render } from "preact";
import { Shell } from "./shell";
import { start } from "./store";
import { applyTheme } from "./theme";

applyTheme();
void start();
render(<Shell />, document.getElementById("app")!);
