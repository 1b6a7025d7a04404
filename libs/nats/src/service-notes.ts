/** A note for operators about a running service. `sluice doctor` and `nats micro ping` show it. */
export interface ServiceNote {
  readonly state: 'bad' | 'note';
  readonly words: string;
  /** What to do about it. */
  readonly todo: string;
}

/** The notes of this process, each with its own name, and what the process waits for. */
export class ServiceNotes {
  private readonly notes = new Map<string, ServiceNote>();
  private readonly listeners: (() => void)[] = [];
  private readonly waits: (() => string | undefined)[] = [];

  /** Sets the note with this name; undefined removes it. */
  set(name: string, note: ServiceNote | undefined): void {
    const before = this.notes.get(name);
    if (before?.words === note?.words && before?.state === note?.state) return;
    if (note === undefined) this.notes.delete(name);
    else this.notes.set(name, note);
    for (const listener of this.listeners) listener();
  }

  /** While this returns what is missing, the process is not ready according to `/readyz`. */
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
