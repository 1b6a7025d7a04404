import { changeView, cli, rolloutView } from '../fakes.fixture.js';
import { readable } from './readable.js';

const CLEAR = '\u001b[2J';
const FORGED = 'c99 ✔ committed';
const views = {
  changes: { c7: [changeView({ message: `${CLEAR}red\n${FORGED}\u202e`, author: `root${CLEAR}\n${FORGED}` })] },
  rollouts: { c7: [rolloutView({ phase: 'reverting', reason: `no\n${FORGED}\u009b2J` })] },
  nodes: {
    n1: [{ node: 'n1', state: 'ready', unavailable: '', since: '', version: '1', labels: { a: `x\n${CLEAR}` } }],
  },
  status: { n1: [{ drifted: [`/etc/${CLEAR}\nn2`], pool: 'w', hash: 'h', driftedSince: '' }] },
};
const answers = {
  'ops.node.why': () => ({ node: 'n1', because: 'refused', text: `it failed${CLEAR}\n${FORGED}`, holders: [] }),
};
/** What a terminal obeys, besides the newline. */
const obeyed = (text: string): readonly string[] =>
  [...text].filter((character) => /[\p{Cc}\u202e]/u.test(character) && character !== '\n');

describe('text of others', () => {
  test.each([
    [['status']],
    [['status', 'c7']],
    [['get', 'changes']],
    [['get', 'nodes']],
    [['get', 'drift']],
    [['why', 'n1']],
    [['why', 'c7']],
  ])('cannot control the terminal or forge a line of %j', async (argv) => {
    const { out, err } = await cli(argv, { views, answers });
    expect(out).not.toBe('');
    expect(obeyed(out + err)).toEqual([]);
    expect(out.split('\n').filter((line) => line.startsWith(FORGED) || line.startsWith('n2'))).toEqual([]);
  });

  test('is shown with escapes in the place of control characters', async () => {
    const { out } = await cli(['status', 'c7'], { views });
    expect(out).toContain(`"\\u001b[2Jred ${FORGED}\\u202e" by root\\u001b[2J ${FORGED}`);
  });

  test('is exact in JSON', async () => {
    const { out } = await cli(['get', 'changes', 'c7', '-o', 'json'], { views });
    expect(JSON.parse(out)).toMatchObject({ author: `root${CLEAR}\n${FORGED}` });
  });

  test('cannot control the terminal in the message of an error', async () => {
    const refuse = (): never => {
      throw new Error(`conflict with ${CLEAR}`);
    };
    const { err } = await cli(['why', 'n1'], { answers: { 'ops.node.why': refuse } });
    expect(err).toBe('error: conflict with \\u001b[2J\n');
  });

  test('keeps newlines and tabs, and values that are no text', () => {
    const at = new Date(0);
    expect(readable({ text: 'a\n\tb\r', list: [1, null, '\u0007'], map: new Map([['k', '\u007f']]), at })).toEqual({
      text: 'a\n\tb\\u000d',
      list: [1, null, '\\u0007'],
      map: new Map([['k', '\\u007f']]),
      at,
    });
  });
});
