import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run } from './tools.fixture.js';

/**
 * Words that the project does not use, and what to write instead. docs/reference/glossary.md defines the words that it
 * uses.
 */
const WORDS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bways? back\b/i, 'rollback'],
  [/\bwayBack/, 'rollback'],
  [/\b(goes|gone|went|going) back\b/i, 'roll back, rolls back, is rolled back'],
  [/\b(owe[ds]?|owing)\b/i, 'deferred, or outstanding'],
  [/\bcondemn\w*/i, 'known-bad'],
  [/\bforg[ai]v\w*/i, 'clear, cleared'],
  [/\bspared\b/i, 'cleared'],
  [/\bunfit\b/i, 'incompatible'],
  [/\bshall\b/i, 'must, or should'],
  [/\bwhoever\b/i, 'a person, a process or a copy that …; or no matter who'],
  [/\bwho leads\b/i, 'the leader'],
  [/\b(anew|afresh)\b/i, 'again, or start over, or recreate'],
  [/\bhow-manieth\b/i, 'number'],
  [/\b(is|are) begun\b/i, 'starts, is started'],
  [/\b(that|which|what) (is|are) none\b/i, 'invalid, or not a …'],
  [/\bwhat (is|are) no\b/i, 'not a …, or invalid'],
  [/\bthat there (is|are) not\b/i, 'unknown, or that does not exist'],
  [/\bwhere there (is|are) (no|none)\b/i, 'if there is no, or without'],
  [/\bof which (nothing|none)\b/i, 'without'],
  [/\bbut for\b/i, 'except, or except for'],
  [/\bone's own\b/i, 'your own, or a separate'],
  [/\bas it stands\b|\bstands? there\b/i, 'current, as stored, or exists'],
  [/\bsays? of\b/i, 'says about, or the field itself'],
  [/\bfor ever\b/i, 'forever'],
  [/\bso-manieth\b/i, 'after this many'],
  [/\bhas no equivalent\b/i, 'unsupported, or skipped'],
  [/\bthere is no service\b/i, 'unknown service'],
  [/\bbeside\b/i, 'next to, besides, in addition to'],
  [/\b(answers|reports)_\b/, 'leaseEnds, or nodeReports'],
  [/\bput(s|ting)? (it|them|drift|everything) right\b/i, 'repair'],
  [/\bheard again\b/i, 'heard from again, or reports again'],
  [/\b(interface|type|class) \w*(Says|Said|Told|Asked|Begun|Hung|Kept)\b/, 'a noun'],
  [/\b(const|let|readonly|function|get) (said|told|asked|asking|begun|awaited)\b/, 'a noun: a message, a request, …'],
  [/\bNode(Look|Owed|Given)\b/, 'NodeReconciler, NodeDeferred, NodeReturned'],
  [/\b(node\.(owed|given)|config\.forgiven|ledger\.raised|node\.lease\.ready)\b/, 'the fact as proto/ names it'],
];

/** Texts by others, and recorded results. */
const NOT_OURS = /^LICENSE$|package-lock\.json$|^bench\/results\/|\/generated\/|^test\/architecture\/words\.spec\.ts$/;

interface Finding {
  readonly line: number;
  readonly word: string;
  readonly instead: string;
}

test('code, messages and docs use the words of the glossary', () => {
  const files = run('git', ['ls-files', '-z', '--cached', '--', '.'])
    .stdout.split('\0')
    .filter((file) => /\.\w+$/.test(file) && !/\.(png|svg|gz|ico)$/.test(file) && !NOT_OURS.test(file));
  expect(files.length).toBeGreaterThan(500);
  const found = files.flatMap((file) =>
    oldWords(textOf(file)).map(({ line, word, instead }) => `${file}:${line} says "${word}": write ${instead}`),
  );
  expect(found).toEqual([]);
});

test('an old word is reported in any case, with its replacement, but not as a part of another word', () => {
  expect(oldWords('one\n// Whoever shall go back\n')).toMatchObject([
    { line: 2, word: 'shall', instead: 'must, or should' },
    { line: 2, word: 'Whoever' },
  ]);
  expect(oldWords('shallow besides followed allowed unfitting')).toEqual([]);
});

/** A file that was deleted but is still in the index has no words. */
function textOf(file: string): string {
  try {
    return readFileSync(join(ROOT, file), 'utf8');
  } catch {
    return '';
  }
}

function oldWords(text: string): readonly Finding[] {
  return text.split('\n').flatMap((content, at) =>
    WORDS.flatMap(([pattern, instead]) => {
      const word = pattern.exec(content)?.[0];
      return word === undefined ? [] : [{ line: at + 1, word, instead }];
    }),
  );
}
