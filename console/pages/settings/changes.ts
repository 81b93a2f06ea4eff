/** The settings of a project as a form edits them, and the changes that the form sends. */
import type { Project } from '../../../protocol/projects/rows.ts'

/** All settings. An absent text is ''. */
export interface Settings {
  readonly name: string
  readonly description: string
  readonly external_ref: string
  readonly access_mode: Project['access_mode']
  readonly separate_approver: boolean
  readonly email_notifications: boolean
  readonly attachments: boolean
}

/** Returns the settings of a project, with the defaults of the service. */
export const settingsOf = (project: Project): Settings => ({
  name: project.name,
  description: project.description ?? '',
  external_ref: project.external_ref ?? '',
  access_mode: project.access_mode,
  separate_approver: project.separate_approver ?? false,
  email_notifications: project.email_notifications ?? false,
  attachments: project.attachments ?? true,
})

/** Returns the settings that differ, as members of an update. */
export const changedSettings = (saved: Settings, shown: Settings): Partial<Settings> =>
  Object.fromEntries(
    Object.entries(shown).filter(([name, value]) => value !== saved[name as keyof Settings]),
  )
