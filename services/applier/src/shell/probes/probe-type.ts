/** What a probe may use. */
export interface ProbeSurroundings {
  readonly root: string;
  readonly allowExec: boolean;
  readonly ending: AbortSignal;
}

/** One way to find out whether the node does well. */
export interface ProbeType {
  /** Of the probe's spec. */
  readonly field: string;
  /** Throws Refused when this node can or may not try it. */
  check(spec: Readonly<Record<string, unknown>>, surroundings: ProbeSurroundings): void;
  /** One try: why it failed, or undefined. Ends by itself in time. */
  tryOnce(
    spec: Readonly<Record<string, unknown>>,
    surroundings: ProbeSurroundings,
    timeoutMs: number,
  ): Promise<string | undefined>;
}
