import { newJournal, type Hang, type Journal } from '../../../services/applier/src/core/index.js';
import { MemoryFiles } from '../../../services/applier/src/testing/memory-node.js';
import { EMPTY_HASH } from '#libs/contracts';

/** What survives kill -9 of the applier: its state folder and the machine's files. */
export class Disk {
  configs = new Map<string, string>();
  files: MemoryFiles;
  /** What a guard left for who has the journal next. */
  hang: Hang | undefined;
  private journal: string;
  private previous: string;
  private parsed: Journal | undefined;

  constructor(node: string, originals: ReadonlyMap<string, string>) {
    this.files = new MemoryFiles(originals);
    this.journal = JSON.stringify(newJournal(node, EMPTY_HASH));
    this.previous = this.journal;
  }

  /** As the state folder does: the copy before counts when the last one cannot be read, and is not lost with it. */
  readJournal(): Journal {
    const parsed = this.parsed ?? parsedJournal(this.journal);
    if (parsed === undefined) this.journal = this.previous;
    this.parsed = parsed ?? (JSON.parse(this.previous) as Journal);
    return this.parsed;
  }

  /** An unfinished work is written twice. */
  writeJournal(journal: Journal): void {
    const text = JSON.stringify(journal);
    this.previous = journal.work === undefined ? this.journal : text;
    this.journal = text;
    this.parsed = undefined;
  }

  /** Power fails in the middle of a write: half of the new journal stands where the last one stood. */
  tearJournal(journal: Journal): void {
    const text = JSON.stringify(journal);
    this.previous = this.journal;
    this.journal = text.slice(0, text.length / 2);
    this.parsed = undefined;
  }

  /** As it is now, to be put back some day. */
  backup(): Disk {
    const copy = new Disk('', new Map());
    copy.configs = new Map(this.configs);
    copy.files = new MemoryFiles(this.files);
    copy.journal = this.journal;
    copy.previous = this.previous;
    return copy;
  }
}

function parsedJournal(text: string): Journal | undefined {
  try {
    return JSON.parse(text) as Journal;
  } catch {
    return undefined;
  }
}
