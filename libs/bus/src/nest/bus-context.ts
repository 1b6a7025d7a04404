/** What a handler may want beside the payload, by `@Ctx()`. */
export class BusContext {
  constructor(
    readonly subject: string,
    readonly headers: Readonly<Record<string, string>>,
  ) {}
}
