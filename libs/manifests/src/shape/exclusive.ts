import { Ruled } from './checked.js';

/** The decorated class has exactly one of these fields. */
export function ExactlyOne(...fields: readonly string[]): ClassDecorator {
  return Ruled({
    problems: (object) => {
      const given = fields.filter((field) => Object.hasOwn(object, field) && object[field] !== undefined);
      if (given.length === 1) return [];
      const found = given.length === 0 ? 'none is given' : `${given.join(' and ')} are given`;
      return [{ at: '', code: 'exactly-one', message: `exactly one of ${fields.join(', ')} is needed, and ${found}` }];
    },
    schema: { oneOf: fields.map((field) => ({ required: [field] })) },
    expressions: [
      {
        rule: `[${fields.map((field) => `has(self.${field})`).join(', ')}].filter(given, given).size() == 1`,
        message: `exactly one of ${fields.join(', ')} is needed`,
      },
    ],
  });
}
