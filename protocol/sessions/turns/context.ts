/**
 * Application context: named facts about the surrounding application that are shown to the model.
 */

/** One named fact. */
export interface AppContext {
  readonly name: string
  readonly content: string
}
