/**
 * Makes text from other programs safe to show in terminals and pages, by removing control
 * sequences. Such sequences could change the title, the clipboard or the link targets of a
 * terminal. Uses no Node modules.
 */

/**
 * Matches control sequences (ECMA-48) with 7-bit and 8-bit introducers. Strings, such as titles,
 * links and clipboard contents, are matched up to their terminator or the end of the line. Other
 * sequences set colours or move the cursor.
 */
const SEQUENCES = new RegExp(
  [
    /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?/,
    /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?/,
    /\x1b[ -/]*[0-~]?/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
)
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g

/**
 * Returns a text without control sequences and control characters, except for tabs and line feeds.
 */
export const plainText = (text: string): string => text.replace(SEQUENCES, '').replace(CONTROLS, '')

/**
 * Replaces control characters, except for tabs and line feeds, with escapes that are valid in JSON
 * and in quoted YAML. JSON and YAML leave those from U+007F to U+009F as they are, although
 * terminals execute them.
 */
export const escapeControls = (text: string): string =>
  text.replace(CONTROLS, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
