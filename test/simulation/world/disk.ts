import { newJournal, type Hang, type Journal } from '../../../services/applier/src/core/index.js';
import { MemoryFiles } from '../../../services/applier/src/testing/memory-node.js';
import { EMPTY_HASH } from '#libs/contracts';
import { CommandTraces } from './commands.js';

/** What survives kill -9 of the applier: its state folder and the files of the machine. */
export class Disk {
  configs = new Map<string, string>();
  files: MemoryFiles;
  readonly commands = new CommandTraces();
  /** What a guard left for the next process that reads the journal. */
  hang: Hang | undefined;
  private journal: string;
  private previous: string;
  private parsed: Journal | undefined;

  constructor(node: string, originals: ReadonlyMap<string, string>, digestOf?: (content: string) => string) {
    this.files = new MemoryFiles(originals, digestOf);
    this.journal = JSON.stringify(newJournal(node, EMPTY_HASH));
    this.previous = this.journal;
  }

  /** Like the state folder: the previous copy is used if the last one is unreadable, and is not lost with it. */
  readJournal(): Journal {
    const parsed = this.parsed ?? parsedJournal(this.journal);
    if (parsed === undefined) this.journal = this.previous;
    this.parsed = parsed ?? (JSON.parse(this.previous) as Journal);
    return this.parsed;
  }

  /** Unfinished work is written twice. */
  writeJournal(journal: Journal): void {
    const text = JSON.stringify(journal);
    this.previous = journal.work === undefined ? this.journal : text;
    this.journal = text;
    this.parsed = undefined;
  }

  /** The power fails during a write: half of the new journal replaces the last one. */
  tearJournal(journal: Journal): void {
    const text = JSON.stringify(journal);
    this.previous = this.journal;
    this.journal = text.slice(0, text.length / 2);
    this.parsed = undefined;
  }

  /** A copy of its current content, which may be restored later. */
  backup(): Disk {
    const copy = new Disk('', new Map());
    copy.configs = new Map(this.configs);
    copy.files = new MemoryFiles(this.files, this.files.digestOf);
    for (const [digest, content] of this.files.contents) copy.files.contents.set(digest, content);
    for (const trace of this.commands.found) copy.commands.found.add(trace);
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
