# SPDX-License-Identifier: Apache-2.0
# What all scripts of this folder compute: they read it. Set the variables, or change them here.
: "${DATA:=mnist}"                     # as for fds fit
: "${OPTIONS:=--players 100}"          # of fds fit; those that change its result, the same for every part
: "${PARTS:=8}"                        # how many
: "${RUN:=mnist.run}"                  # the run; parts are beside it, in RUN.parts
: "${FDS:=fds}"                        # the command
