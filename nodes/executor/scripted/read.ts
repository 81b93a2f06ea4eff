/**
 * Finds and reads the script in an agent's instructions: the whole text, or the first fenced block
 * that is a script.
 */
import { Value } from 'typebox/value'
import { readYaml } from '../../../gateway/files/yaml.ts'
import { DEFAULT_SCRIPT, Script } from './script.ts'

/** Maximum number of characters of a script. */
const MAX_SCRIPT_LENGTH = 262_144
const fences = /^```(?:ya?ml)?[ \t]*\n([\s\S]*?)^```[ \t]*$/gm
const begins = /^\s*(?:#.*\n\s*)*script\s*:/

/**
 * Returns the rules of the script in a text, or the echo rule if the text has no script. If the
 * script is invalid, `wrong` completes the sentence "The script …".
 */
export function readScript(instructions: string): Script | { readonly wrong: string } {
  const source = [
    instructions,
    ...[...instructions.matchAll(fences)].map(([, inner = '']) => inner),
  ].find((text) => begins.test(text))
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
