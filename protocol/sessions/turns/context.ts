/** Application context: named facts about the surrounding application that the model is shown. */

/** The value of one named fact. */
export interface AppContext {
  readonly name: string
  readonly content: string
}
