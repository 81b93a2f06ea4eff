/** Tags as the text of a form, for records with few tags. Other forms have fields for each tag. */

/** Reads tags from lines such as `team=sales`. A line without `=` is a key with the value ''. */
export const tagsOfLines = (value: string): Record<string, string> =>
  Object.fromEntries(
    value
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .map((line) => {
        const at = line.indexOf('=')
        return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
      }),
  )
/** Returns tags as text with one line `key=value` for each tag. */
export const tagLines = (tags: Readonly<Record<string, string>> = {}): string =>
  Object.entries(tags)
    .map(([key, value]) => `${key}=${value}`)
    .join('\n')
