import type { TextForm } from '#libs/manifests';
import type { ImportReport } from './import-report.js';

export interface Text {
  readonly text: string;
  readonly where: string;
}

/** Each once, in their order. One that Sluice would refuse is named and left out by itself: the others are good without it. */
export function allowedTexts(
  noun: string,
  texts: readonly Text[],
  form: TextForm,
  report: ImportReport,
): readonly string[] {
  const seen = new Set<string>();
  return texts
    .filter(({ text, where }) => {
      if (seen.has(text)) return false;
      seen.add(text);
      const problem = form.problem(text);
      if (problem !== undefined)
        report.say(
          where,
          `the ${noun} ${JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)} ${problem}: it is left out`,
        );
      return problem === undefined;
    })
    .map(({ text }) => text);
}

/** MCO puts a text with spaces on the command line as it stands, where spaces part arguments; the kernel keeps together what is in double quotes. */
export const splitArguments = (text: string): readonly string[] => text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? [];

const MAX_SHOWN = 60;
