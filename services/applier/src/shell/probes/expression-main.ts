// Evaluates CEL expressions for the process that started it. An expression that takes too long, or too much memory, can
// do no harm here: it is stopped, or this process dies and is started again.
import { Script } from 'node:vm';
import { celExpression } from '#libs/manifests/lean';
import type { ExpressionAnswer, ExpressionRequest } from './expressions.js';

/** Also ends what would never end, if the process that started this one is gone. */
const EVALUATION_MS = 1_000;
const world: { evaluate?: () => unknown } = {};
Object.assign(globalThis, { world });
const SCRIPT = new Script('world.evaluate()');

process.on('message', (request: ExpressionRequest) => process.send?.(answer(request)));
process.on('disconnect', () => process.exit(0));
process.send?.('ready');

function answer({ expression, object }: ExpressionRequest): ExpressionAnswer {
  try {
    const checked = celExpression(expression);
    if (typeof checked === 'string') return { problem: checked };
    world.evaluate = () => checked.evaluate(JSON.parse(object));
    const value: unknown = SCRIPT.runInThisContext({ timeout: EVALUATION_MS });
    return typeof value === 'boolean' ? { value } : { problem: 'its value must be true or false, and it is neither' };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
      ? { tooMuch: `more than ${EVALUATION_MS / 1_000} s` }
      : { problem: message };
  }
}
