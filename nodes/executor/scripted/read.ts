/**
 * Finds and reads the script in an agent's instructions: the whole text, or the first fenced block
 * that is a script.
 */
import { Value } from 'typebox/value'
import { readYaml } from '../../../gateway/files/yaml.ts'
import { DEFAULT_SCRIPT, Script } from './script.ts'

/** Maximum number of characters of a script. */
const MAX_SCRIPT_LENGTH = 262_144
const opens = /^```(?:ya?ml)?[ \t]*$/
const closes = /^```[ \t]*$/
const begins = /^\s*(?:#.*\n\s*)*script\s*:/

/**
 * Returns the rules of the script in a text, or the echo rule if the text has no script. If the
 * script is invalid, `wrong` completes the sentence "The script …".
 */
export function readScript(instructions: string): Script | { readonly wrong: string } {
  const source = [instructions, ...blocksOf(instructions)].find((text) => begins.test(text))
  if (source === undefined) return DEFAULT_SCRIPT
  const read = readYaml(source, MAX_SCRIPT_LENGTH)
  if ('fault' in read) return { wrong: read.fault }
  const { value } = read
  if (Value.Check(Script, value)) return value.script
  const [first] = [...Value.Errors(Script, value)].sort(
    (a, b) => b.instancePath.length - a.instancePath.length,
  )
  return { wrong: `is invalid at ${first?.instancePath || '/'}: ${first?.message ?? ''}` }
}

/**
 * Returns the content of the fenced blocks of a text. The lines are read once, because a pattern
 * for a block would read the rest of the text for each fence that is never closed.
 */
function blocksOf(text: string): readonly string[] {
  const blocks: string[] = []
  let inner: string[] | undefined
  for (const line of text.split('\n')) {
    if (!inner) inner = opens.test(line) ? [] : undefined
    else if (closes.test(line)) {
      blocks.push(inner.join('\n'))
      inner = undefined
    } else inner.push(line)
  }
  return blocks
}
