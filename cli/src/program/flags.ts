/** For flags that may be repeated. */
export const collect = (value: string, before: readonly string[]): string[] => [...before, value];
