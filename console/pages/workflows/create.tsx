/** The dialog that creates a workflow from a template. */
import { call } from '../../api/client.ts'
import { go } from '../../router/router.ts'
import { current } from '../../shell/session.ts'
import { CreateFromTemplate } from '../build/create-dialog.tsx'
import { templates } from './templates.ts'
import { workflowsText as text } from './text.ts'

/** Shows the dialog. After the workflow has been created, its page opens. */
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
    templates={templates}
    onClose={onClose}
    onCreate={async (name, template) => {
      const spec = template.spec(current.peek()?.principal.id ?? '')
      const made = await call('workflow.create', { project, name, spec })
      go(`/p/${encodeURIComponent(project)}/workflows/${made.id}`, { replace: true })
    }}
  />
)
