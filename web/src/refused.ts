// How ttmond is asked, and how it says no: in the page and in the worker that
// follows it for all tabs.

export const headers = (session: string): HeadersInit => (session ? { "X-Ttmon-Session": session } : {});

/** Refused is an answer that is no success, with ttmond's own sentence. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export async function refusal(r: Response): Promise<Refused> {
  let text = "";
  try {
    text = ((await r.json()) as { error?: string }).error ?? "";
  } catch {
    // no JSON: the status says enough
  }
  return new Refused(r.status, text || `ttmond answers ${r.status} ${r.statusText}`);
}
