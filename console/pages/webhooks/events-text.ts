/** Reads the event types of a webhook from text. */

/** Reads event types that are separated by white space or commas, without duplicates. */
export const eventsOf = (text: string): readonly string[] => [
  ...new Set(text.split(/[\s,]+/).filter((type) => type !== '')),
]
