// Where boards and trays are drawn, so that links are short and do not cross.

/** A board or a tray: its chips by their keys, row by row. */
export interface Group {
  chips: string[];
  columns: number;
}

/** A place for a group: its number in the order of places, and whether it is mirrored. */
export interface Placed {
  place: number;
  flipX: boolean;
  flipY: boolean;
}

/** The column and the row of the nth chip of a group. */
export function cellOf(g: Group, nth: number, p: Placed): [number, number] {
  const rows = Math.ceil(g.chips.length / g.columns);
  const x = nth % g.columns;
  const y = Math.floor(nth / g.columns);
  return [p.flipX ? g.columns - 1 - x : x, p.flipY ? rows - 1 - y : y];
}

/** More groups than this stay in their order: trying all would take too long. */
const mostGroups = 4;

/**
 * Places groups in rows of so many. Trays of a Galaxy and boards of a T3000 are
 * mirror images of each other: in the order of their numbers their links would
 * cross. All orders are tried; of equal ones the first stays, so that a drawing
 * does not depend on which links are up.
 */
export function arrange(groups: Group[], joins: [string, string][], across: number): Placed[] {
  const asTheyAre = groups.map((_, place) => ({ place, flipX: false, flipY: false }));
  const home = new Map<string, [number, number]>();
  groups.forEach((g, i) => g.chips.forEach((key, nth) => home.set(key, [i, nth])));
  const between = joins.flatMap(([a, b]) => {
    const [from, to] = [home.get(a), home.get(b)];
    return from && to && from[0] !== to[0] ? [[from, to] as const] : [];
  });
  if (groups.length > mostGroups || between.length === 0) return asTheyAre;
  const wide = Math.max(...groups.map((g) => g.columns)) + 0.5;
  const high = Math.max(...groups.map((g) => Math.ceil(g.chips.length / g.columns))) + 0.5;
  const length = (list: Placed[]): number => {
    const at = ([i, nth]: [number, number]): [number, number] => {
      const p = list[i]!;
      const [x, y] = cellOf(groups[i]!, nth, p);
      return [(p.place % across) * wide + x, Math.floor(p.place / across) * high + y];
    };
    let sum = 0;
    for (const [from, to] of between) {
      const [a, b] = [at(from), at(to)];
      sum += (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2;
    }
    return sum;
  };
  let best = asTheyAre;
  let least = length(best);
  for (const list of orders(groups)) {
    const n = length(list);
    if (n < least) [best, least] = [list, n];
  }
  return best;
}

/** Every order of the groups, with every way of mirroring each. */
function* orders(groups: Group[], chosen: Placed[] = []): Generator<Placed[]> {
  const g = groups[chosen.length];
  if (!g) {
    yield [...chosen];
    return;
  }
  for (let place = 0; place < groups.length; place++) {
    if (chosen.some((p) => p.place === place)) continue;
    for (const flipX of g.columns > 1 ? [false, true] : [false]) {
      for (const flipY of g.chips.length > g.columns ? [false, true] : [false]) {
        yield* orders(groups, [...chosen, { place, flipX, flipY }]);
      }
    }
  }
}
