/** What a person should know about a running service: shown by `sluice doctor` and `nats micro ping`. */
export interface ServiceNote {
  readonly state: 'bad' | 'note';
  readonly words: string;
  /** What to do about it. */
  readonly todo: string;
}

/** The notes of this process, each under a name of its own, and what it waits for. */
export class ServiceNotes {
  private readonly notes = new Map<string, ServiceNote>();
  private readonly listeners: (() => void)[] = [];
  private readonly waits: (() => string | undefined)[] = [];

  /** Says something under a name in place of what was said before; undefined takes it back. */
  set(name: string, note: ServiceNote | undefined): void {
    const before = this.notes.get(name);
    if (before?.words === note?.words && before?.state === note?.state) return;
    if (note === undefined) this.notes.delete(name);
    else this.notes.set(name, note);
    for (const listener of this.listeners) listener();
  }

  /** The process is not ready, `/readyz` says, while this says what is missing. */
  waitFor(missing: () => string | undefined): void {
    this.waits.push(missing);
  }

  get missing(): string | undefined {
    return this.waits.map((missing) => missing()).find((words) => words !== undefined);
  }

  get all(): readonly ServiceNote[] {
    return [...this.notes.values()];
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }
}
