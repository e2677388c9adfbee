# SPDX-License-Identifier: Apache-2.0
# Writes a text file as a C string: cmake -D IN=page.css -D OUT=page.css.c -D NAME=page_css -P embed.cmake
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1,\n" bytes "${bytes}")
file(WRITE ${OUT} "#include \"daemon/http/pages/page.h\"\n\nconst char ${NAME}[] = {\n${bytes}0\n};\n")
