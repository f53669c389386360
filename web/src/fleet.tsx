import { Empty } from "./parts";

export function FleetPage() {
  return <Empty>…</Empty>;
}
