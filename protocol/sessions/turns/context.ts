/** Application context: what a model is told about the application around its session, by name. */

/** A snapshot of one thing. */
export interface AppContext {
  readonly name: string
  readonly content: string
}
