import type { Io } from './io.js';
import { fit } from './table.js';

/** A screen that is redrawn in place. */
export interface LiveScreen {
  draw(text: string): void;
  /** Keeps the last drawing on the screen. */
  end(): void;
}

/** Redraws in place; undefined if the stream is not a terminal. Then lines are printed instead. */
export function live(io: Io, stream: 'out' | 'err'): LiveScreen | undefined {
  const isTerminal = stream === 'out' ? io.isTerminal : io.isErrTerminal;
  if (!isTerminal) return undefined;
  let drawnLines = 0;
  io.write('\u001b[?25l', stream);
  return {
    draw(text) {
      const lines = text
        .split('\n')
        .slice(0, Math.max(1, io.rows - 1))
        .map((line) => fit(line, io.columns));
      const up = drawnLines === 0 ? '' : `\u001b[${drawnLines}A`;
      io.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join('')}\u001b[0J`, stream);
      drawnLines = lines.length;
    },
    end: () => io.write('\u001b[?25h', stream),
  };
}
