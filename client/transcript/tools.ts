import type { ToolResultBlock, ToolUseBlock } from '../../protocol/sessions/turns/blocks.ts'

/** Returns the status of a tool call: pending, running, waiting, ok, error or cancelled. */
export const toolStatus = ({ status }: ToolUseBlock, result: ToolResultBlock | undefined): string =>
  status ?? (result === undefined ? 'pending' : result.is_error ? 'error' : 'ok')

/** Returns the value of a result that is JSON, and the text of any other result. */
export function resultOf({ content = '' }: ToolResultBlock): unknown {
  const text =
    typeof content === 'string'
      ? content
      : content
          .map((part) =>
            typeof part['text'] === 'string' ? part['text'] : JSON.stringify(part, null, 2),
          )
          .join('\n')
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
