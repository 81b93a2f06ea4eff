/** Reads settings that are JSON, or the path of a file with JSON, and describes their faults. */
import { readFileSync } from 'node:fs'
import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'
import type { SettingFault } from './parse.ts'

/**
 * Returns the value of a text that is JSON, or the path of a file with JSON. The message of a fault
 * quotes nothing of the text, because the text may contain a secret.
 */
export function readJson(text: string): { readonly value: unknown } | SettingFault {
  const inline = /^\s*[[{"]/.test(text)
  try {
    return { value: JSON.parse(inline ? text : readFileSync(text, 'utf8')) }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return {
      wrong: `must be JSON, or the path of a file with JSON${code === undefined ? '' : `: ${code}`}`,
    }
  }
}

/**
 * Describes the first fault of a value that does not match the schema, as the end of a sentence.
 * @param sentences what a text must be, by the pattern of the schema.
 */
export function schemaFault(
  schema: TSchema,
  value: unknown,
  sentences: Readonly<Record<string, string>>,
): SettingFault {
  // An unknown member has two errors. The error of its value says only that its schema is false.
  const errors = Value.Errors(schema, value).filter(({ keyword }) => keyword !== 'boolean')
  const [first] = errors
  const place = first?.instancePath ?? ''
  const unknown = errors.flatMap((error) =>
    error.keyword === 'additionalProperties' && error.instancePath === place
      ? error.params.additionalProperties
      : [],
  )
  const faults = [
    ...(first === undefined || first.keyword === 'additionalProperties'
      ? []
      : [sentenceOf(first, sentences)]),
    ...(unknown.length > 0 ? [`has the unknown member ${unknown.join(', ')}`] : []),
  ]
  return { wrong: `is invalid at ${place || '/'}: ${faults.join(', and ')}` }
}

type SchemaError = ReturnType<typeof Value.Errors>[number]

function sentenceOf(error: SchemaError, sentences: Readonly<Record<string, string>>): string {
  if (error.keyword === 'enum')
    return `must be one of ${error.params.allowedValues.map(String).join(', ')}`
  if (error.keyword === 'pattern') return sentences[String(error.params.pattern)] ?? error.message
  return error.message
}
