/** The dialog that creates a loop from a template. */
import { call } from '../../api/client.ts'
import { go } from '../../router/router.ts'
import { CreateFromTemplate } from '../build/create-dialog.tsx'
import { loopTemplates } from './templates.ts'
import { loopsText as text } from './text.ts'

/** Shows the dialog. After the loop has been created, its page opens. */
export const CreateDialog = ({
  project,
  onClose,
}: {
  readonly project: string
  readonly onClose: () => void
}) => (
  <CreateFromTemplate
    title={text.create}
    label={text.template}
    templates={loopTemplates}
    onClose={onClose}
    onCreate={async (name, template) => {
      const made = await call('loop.create', { project, name, ...template.definition() })
      go(`/p/${encodeURIComponent(project)}/loops/${made.id}`, { replace: true })
    }}
  />
)
