/**
 * Inserts examples into the OpenAPI document. An example is a request and its response, recorded
 * from a running service. `test/scenarios/first-use/examples.test.ts` records and checks the
 * examples, which are stored in `examples.json`.
 */
export interface Example {
  /** Values of the path parameters, by name. */
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly status: number
  /** The response body: JSON, or the text of a file or stream; absent when there is no body. */
  readonly answer?: unknown
}
/** Examples by operation name. */
export type Examples = Readonly<Record<string, Example>>

type Json = Readonly<Record<string, unknown>>
interface Content {
  readonly content?: Readonly<Record<string, Json>>
}

/**
 * Returns an operation of the document with its example in the parameters, the request body and the
 * response.
 */
export function withExample(operation: Json, example: Example | undefined): Json {
  if (!example) return operation
  const { path = {}, query = {}, body, status, answer } = example
  const values: Json = { ...path, ...query }
  const parameters = operation['parameters'] as readonly Json[]
  const requestBody = operation['requestBody'] as Content | undefined
  const responses = operation['responses'] as Readonly<Record<string, Content>>
  const answered = responses[String(status)]
  return {
    ...operation,
    parameters: parameters.map((parameter) => {
      const value = values[String(parameter['name'])]
      return value === undefined ? parameter : { ...parameter, example: value }
    }),
    ...(requestBody && { requestBody: filled(requestBody, body) }),
    responses: { ...responses, ...(answered && { [status]: filled(answered, answer) }) },
  }
}

/**
 * Adds an example to the matching media types. A text matches all types except JSON and forms. Any
 * other value matches only JSON and forms.
 */
function filled(described: Content, example: unknown): Content {
  if (example === undefined || !described.content) return described
  const content = Object.entries(described.content).map(([type, media]) => {
    const fields = /^(application\/(json|x-www-form-urlencoded)|multipart\/form-data)$/.test(type)
    const fits = typeof example === 'string' ? !fields : fields
    return [type, fits ? { ...media, example } : media]
  })
  return { ...described, content: Object.fromEntries(content) }
}
