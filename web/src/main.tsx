import { render } from "preact";
import { Shell } from "./shell";
import { bytes, markOf } from "./figures";
import { start } from "./store";
import { applyTheme } from "./theme";

applyTheme();
void start();
// For tests, which hold these against ttmon itself.
Object.assign(window, { ttmon: { bytes, markOf } });
render(<Shell />, document.getElementById("app")!);
