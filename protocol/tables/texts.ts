/**
 * Conversion of texts to typed values. In the parameters of a step, every expression is rendered as
 * text: objects and arrays as JSON, and null as the empty text. The built-in actions on tables
 * convert these texts to the types of the columns. A text that is not a value of the type is
 * returned unchanged, so that the refusal contains the text.
 */
import type { JsonObject } from '../common.ts'
import { isJsonObject } from '../rules/json-object.ts'
import { columnOf } from './definition.ts'
import { fieldOf } from './query.ts'
import type { ColumnType, TableSchema } from './schema.ts'
import { isOfType } from './values.ts'

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/**
 * Converts a text to a value of a column. Columns of the types `string` and `any` accept every text
 * unchanged. For other columns, a blank text becomes null. Values that are not texts are returned
 * unchanged.
 */
export function valueOfText(type: ColumnType, value: unknown): unknown {
  if (typeof value !== 'string' || type === 'string' || type === 'any') return value
  if (value.trim() === '') return null
  if (type === 'date') return value
  const read = parsed(value)
  return isOfType(type, read) ? read : value
}

/** Returns the data of a row with its texts converted to the types of the columns. */
export const dataOfTexts = (schema: TableSchema, data: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(data).map(([name, value]) => [
      name,
      valueOfText(columnOf(schema, name)?.type ?? 'any', value),
    ]),
  )

function operandOfText(type: ColumnType, operator: string, value: unknown): unknown {
  if (operator === '$exists') return valueOfText('boolean', value)
  if (operator !== '$in') return valueOfText(type, value)
  const list = valueOfText('array', value)
  return Array.isArray(list) ? list.map((item) => valueOfText(type, item)) : list
}
/** Returns a filter with its texts converted to the types of the fields. */
export const filterOfTexts = (schema: TableSchema, filter: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(filter).map(([name, condition]) => {
      const type = fieldOf(schema, name)?.type ?? 'any'
      const read = isJsonObject(condition)
        ? Object.fromEntries(
            Object.entries(condition).map(([operator, value]) => [
              operator,
              operandOfText(type, operator, value),
            ]),
          )
        : valueOfText(type, condition)
      return [name, read]
    }),
  )

/**
 * Converts texts in parameters whose schema requires a number, an object or an array. A parameter
 * whose value is the empty text is removed.
 * @param input_schema schema of an object, whose `properties` have types.
 */
export function parametersOfTexts(input_schema: JsonObject, parameters: JsonObject): JsonObject {
  const properties = input_schema['properties'] as Readonly<Record<string, JsonObject>>
  return Object.fromEntries(
    Object.entries(parameters)
      .filter(([, value]) => value !== '')
      .map(([name, value]) => {
        const type = properties[name]?.['type']
        const column = type === 'integer' ? 'number' : type
        return [
          name,
          column === 'number' || column === 'object' || column === 'array'
            ? valueOfText(column, value)
            : value,
        ]
      }),
  )
}
