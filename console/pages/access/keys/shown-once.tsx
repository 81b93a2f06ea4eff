/** Shows a new key, token or signing secret. The service never returns its value again. */
import { Button } from '../../../design/button.tsx'
import { Code } from '../../../design/copy.tsx'
import { Dialog } from '../../../design/overlay.tsx'
import { Notice } from '../../../design/states.tsx'
import { accessText as text } from '../text.ts'

/** Shows the value in a dialog. `example` is a command that uses it. */
export const ShownOnce = ({
  title,
  value,
  example,
  onClose,
}: {
  readonly title: string
  readonly value: string
  readonly example?: string
  readonly onClose: () => void
}) => (
  <Dialog title={title} onClose={onClose}>
    <Notice tone="warn">{text.shownOnce}</Notice>
    <Code>{value}</Code>
    {example !== undefined && (
      <>
        <h3>{text.tryIt}</h3>
        <Code>{example}</Code>
      </>
    )}
    <div class="actions">
      <Button kind="primary" onClick={onClose}>
        {text.done}
      </Button>
    </div>
  </Dialog>
)

/** Returns a `curl` command that requests the identity of a key. */
export const whoAmI = (project: string, key: string): string =>
  `curl -H "Authorization: Bearer ${key}" ${location.origin}/v1/projects/${encodeURIComponent(project)}/me`
