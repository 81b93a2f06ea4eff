/**
 * Reads skills from Markdown. An optional YAML block between two `---` lines contains the name,
 * description, allowed tools and tags. The rest of the text is the instructions.
 */
import { type FieldError, type Refusal, refuseFields } from '../../protocol/errors.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { faultsOf } from '../../protocol/rules/schema-faults/faults.ts'
import { SkillBody } from '../../protocol/skills/schema.ts'
import { readYaml } from './yaml.ts'

/** Maximum length of front matter in characters. */
const MAX_FRONT_MATTER_LENGTH = 65_536

const BLOCK = /^\uFEFF?---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)?---[ \t]*(?:\r?\n|$)/
const fault = (message: string): Refusal => refuseFields({ field: 'content', message })

/**
 * Splits a text at commas and white space, because a list may be written as a single string. Other
 * values are returned unchanged.
 */
const listed = (value: unknown): unknown =>
  typeof value === 'string' ? value.split(/[,\s]+/).filter(Boolean) : value
/** Converts tags to a map. A list of tags becomes keys with empty values. */
const tagged = (value: unknown): unknown => {
  const words = listed(value)
  if (Array.isArray(words)) return Object.fromEntries(words.map((word) => [String(word), '']))
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(
        Object.entries(value).map(([key, member]) => [
          key,
          typeof member === 'number' || typeof member === 'boolean' ? String(member) : member,
        ]),
      )
    : value
}

/**
 * Reads the skill that a Markdown text describes. Unknown keys of the front matter are ignored.
 * @param name name of the skill, which takes precedence over the name in the front matter.
 */
export function readSkill(content: string, name: string | undefined): SkillBody | Refusal {
  const block = BLOCK.exec(content)
  const instructions = (block ? content.slice(block[0].length) : content)
    .replace(/^\uFEFF/, '')
    .trim()
  const matter = block ? frontMatter(block[1] ?? '') : {}
  if ('refused' in matter) return matter as unknown as Refusal
  const { description, tags } = matter
  const allowed = matter['allowed_tools'] ?? matter['allowed-tools']
  const skill = {
    instructions,
    name: name ?? matter['name'],
    ...(description != null && { description }),
    ...(allowed != null && { allowed_tools: listed(allowed) }),
    ...(tags != null && { tags: tagged(tags) }),
  }
  if (skill.name == null)
    return refuseFields({
      field: 'name',
      message: 'is required, as a field or in the front matter',
    })
  const faults: FieldError[] =
    instructions === ''
      ? [{ field: 'content', message: 'has no instructions after the front matter' }]
      : faultsOf(SkillBody, skill)
  return faults.length > 0
    ? refuseFields(
        ...faults.map((one) =>
          ['instructions', 'content'].includes(one.field) ? { ...one, field: 'content' } : one,
        ),
      )
    : (skill as SkillBody)
}

function frontMatter(text: string): Readonly<Record<string, unknown>> | Refusal {
  const read = readYaml(text, MAX_FRONT_MATTER_LENGTH)
  if ('fault' in read) return fault(`its front matter ${read.fault}`)
  const { value } = read
  if (value === null) return {}
  return isJsonObject(value) ? value : fault('its front matter is not a mapping')
}
